//! The handler of the test worker, which does what the configuration of a task says.
//!
//! For example `{"do": "sleep", "ms": 100}` in the configuration of the handler or of the asset.
//! The name of the handler alone selects a behaviour too.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use servo_client::worker::{Attempt, AttemptOutcome, Handler};
use servo_client::{Client, api};

/// The behaviour of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behaviour {
    Noop,
    Sleep {
        ms: u64,
    },
    /// Fails the first `times` times.
    Fail {
        category: api::ErrorCategory,
        times: u32,
    },
    /// Exits the process at once.
    Die,
    /// Reports success twice.
    Duplicate,
    /// Reports success, and then a failure.
    Lie,
    /// Reports success with a forged signature, then succeeds.
    Forge,
    /// Never reports a start, a heartbeat or an end, and ignores cancellation.
    Hang,
    /// Reports its start and is silent from then on.
    Freeze,
    /// Ignores cancellation.
    Deaf {
        ms: u64,
    },
    /// Skips, because there is nothing to do.
    Skip,
    /// Returns the first attempt unfinished, then succeeds.
    GiveBack,
    /// Yields items for the tasks that are mapped over it.
    Items {
        count: u32,
    },
    /// Succeeds with a failed critical check, which blocks dependent tasks.
    BlockedByCheck,
    /// Succeeds with a failed check, which quarantines the output.
    Quarantine,
    /// Writes an output and its commit marker.
    Commit {
        marker: Marker,
        /// The delay before the output is written.
        ms: u64,
    },
}

/// The commit marker that is written and reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    Good,
    Missing,
    /// The reported digest is not that of the marker.
    Wrong,
    /// Names another attempt.
    Foreign,
    /// Outside of the folder of the attempt.
    Elsewhere,
}

impl Behaviour {
    const NAMES: [&str; 16] = [
        "noop",
        "sleep",
        "fail",
        "die",
        "duplicate",
        "lie",
        "forge",
        "hang",
        "freeze",
        "deaf",
        "skip",
        "give_back",
        "items",
        "blocked_by_check",
        "quarantine",
        "commit",
    ];

    /// The behaviour that an envelope requests; [`Behaviour::Noop`] by default.
    pub fn of(envelope: &api::TaskEnvelope) -> Behaviour {
        let handler = envelope.code.as_ref().and_then(|code| match &code.target {
            Some(api::code_ref::Target::Handler(handler)) => Some(handler),
            _ => None,
        });
        let text = handler
            .map(|handler| handler.config_json.as_str())
            .filter(|text| !text.is_empty());
        let config: Value = serde_json::from_str(text.unwrap_or(&envelope.asset_config_json))
            .unwrap_or(Value::Null);
        let named = config["do"]
            .as_str()
            .or(handler.map(|handler| handler.name.as_str()));
        let number = |key: &str| config[key].as_u64();
        match named.unwrap_or("noop") {
            "sleep" => Behaviour::Sleep {
                ms: number("ms").unwrap_or(100),
            },
            "fail" => Behaviour::Fail {
                category: category(config["category"].as_str().unwrap_or("USER_CODE")),
                times: number("times")
                    .and_then(|times| u32::try_from(times).ok())
                    .unwrap_or(u32::MAX),
            },
            "die" => Behaviour::Die,
            "duplicate" => Behaviour::Duplicate,
            "lie" => Behaviour::Lie,
            "forge" => Behaviour::Forge,
            "hang" => Behaviour::Hang,
            "freeze" => Behaviour::Freeze,
            "deaf" => Behaviour::Deaf {
                ms: number("ms").unwrap_or(1_000),
            },
            "skip" => Behaviour::Skip,
            "give_back" => Behaviour::GiveBack,
            "items" => Behaviour::Items {
                count: number("count")
                    .and_then(|count| u32::try_from(count).ok())
                    .unwrap_or(1),
            },
            "blocked_by_check" => Behaviour::BlockedByCheck,
            "quarantine" => Behaviour::Quarantine,
            "commit" => Behaviour::Commit {
                marker: marker(config["marker"].as_str().unwrap_or("good")),
                ms: number("ms").unwrap_or(0),
            },
            _ => Behaviour::Noop,
        }
    }
}

fn marker(name: &str) -> Marker {
    match name {
        "missing" => Marker::Missing,
        "wrong" => Marker::Wrong,
        "foreign" => Marker::Foreign,
        "elsewhere" => Marker::Elsewhere,
        _ => Marker::Good,
    }
}

/// Writes an output below the folder of the attempt, then the marker, and returns the output to
/// report.
fn commit(envelope: &api::TaskEnvelope, marker: Marker) -> Result<api::Output> {
    let folder = Path::new(
        envelope
            .output_uri
            .strip_prefix("file://")
            .context("read the folder of the output")?,
    );
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("data"), "rows")?;
    let written_by = if marker == Marker::Foreign {
        "another"
    } else {
        envelope.attempt_id.as_str()
    };
    let text = json!({"run_id": envelope.run_id, "materialization_id": written_by}).to_string();
    if marker != Marker::Missing {
        // A marker is never overwritten.
        File::create_new(folder.join("_commit.json"))?.write_all(text.as_bytes())?;
    }
    let digest = servo_model::Digest::of(if marker == Marker::Wrong {
        "another".as_bytes()
    } else {
        text.as_bytes()
    });
    let uri = match marker {
        Marker::Elsewhere => format!("{}../", envelope.output_uri),
        _ => envelope.output_uri.clone(),
    };
    Ok(api::Output {
        asset_key: envelope.asset_key.clone(),
        partition_key: envelope.partition_key.clone(),
        uri,
        commit_digest: digest.to_string(),
        byte_size: 4,
        ..Default::default()
    })
}

/// The presigned path with another signature of the same length.
pub fn forge(path: &str) -> String {
    let (rest, signature) = path.split_once("sig=").unwrap_or((path, ""));
    let other = if signature.starts_with('A') { 'B' } else { 'A' };
    format!(
        "{rest}sig={other}{}",
        signature.get(1..).unwrap_or_default()
    )
}

fn category(name: &str) -> api::ErrorCategory {
    let full = format!("ERROR_CATEGORY_{}", name.to_ascii_uppercase());
    api::ErrorCategory::from_str_name(&full).unwrap_or(api::ErrorCategory::UserCode)
}

/// A file outside of Servo with one line per attempt that began.
#[derive(Debug)]
pub struct Journal(File);

impl Journal {
    pub fn open(path: &Path) -> Result<Journal> {
        let file = File::options().create(true).append(true).open(path);
        Ok(Journal(
            file.with_context(|| format!("open {}", path.display()))?,
        ))
    }

    /// Appends with one write, so that the lines of several processes do not mix.
    fn append(&self, attempt: &Attempt) {
        let (envelope, session) = (attempt.envelope(), attempt.session());
        let at = UNIX_EPOCH
            .elapsed()
            .expect("the clock is after 1970")
            .as_micros();
        let line = format!(
            "{} {} {session} {at}\n",
            envelope.task_key, envelope.attempt_id
        );
        (&self.0)
            .write_all(line.as_bytes())
            .expect("the journal is writable");
    }
}

/// Executes the [`Behaviour`] of each attempt.
#[derive(Debug)]
pub struct TestHandler {
    callback: Client,
    journal: Option<Journal>,
}

impl TestHandler {
    pub fn new(callback: Client, journal: Option<Journal>) -> TestHandler {
        TestHandler { callback, journal }
    }

    /// The handler names that it serves.
    pub fn names() -> Vec<String> {
        Behaviour::NAMES.map(str::to_owned).to_vec()
    }

    /// Reports success with the given presigned path, in addition to the report of the worker.
    async fn report_success(
        &self,
        attempt: &Attempt,
        presigned: &str,
    ) -> Result<(), tonic::Status> {
        let envelope = attempt.envelope();
        let finish = api::FinishAttemptRequest {
            tenant: envelope.tenant.clone(),
            workspace: envelope.workspace.clone(),
            run_id: envelope.run_id.clone(),
            attempt_id: envelope.attempt_id.clone(),
            task: envelope.task,
            worker_id: attempt.worker_id().to_owned(),
            session: attempt.session().to_owned(),
            outcome: api::Outcome::Succeeded.into(),
            ..api::FinishAttemptRequest::default()
        };
        let mut request = tonic::Request::new(finish);
        let value = presigned
            .parse()
            .map_err(|_| tonic::Status::invalid_argument("the path is not ASCII"))?;
        request.metadata_mut().insert("servo-presigned", value);
        self.callback
            .callback()
            .finish_attempt(request)
            .await
            .map(drop)
    }
}

impl Handler for TestHandler {
    async fn run(&self, attempt: Attempt) -> AttemptOutcome {
        if let Some(journal) = &self.journal {
            journal.append(&attempt);
        }
        let finished = attempt
            .envelope()
            .callbacks
            .clone()
            .unwrap_or_default()
            .finished;
        match Behaviour::of(attempt.envelope()) {
            Behaviour::Noop => AttemptOutcome::succeeded(),
            Behaviour::Sleep { ms } => {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(ms)) => AttemptOutcome::succeeded(),
                    () = attempt.cancelled() => AttemptOutcome::cancelled(),
                }
            }
            Behaviour::Fail { category, times } if attempt.envelope().failures < times => {
                let message = format!("requested failure {}", attempt.envelope().failures + 1);
                AttemptOutcome::failed(api::TaskError {
                    category: category.into(),
                    message,
                    ..Default::default()
                })
            }
            Behaviour::Fail { .. } => AttemptOutcome::succeeded(),
            Behaviour::Die => std::process::exit(9),
            // Tests check the effect of these reports on the server, so their responses are
            // ignored.
            Behaviour::Duplicate => {
                let _ = self.report_success(&attempt, &finished).await;
                AttemptOutcome::succeeded()
            }
            Behaviour::Lie => {
                let _ = self.report_success(&attempt, &finished).await;
                let message = "it did not succeed after all".to_owned();
                AttemptOutcome::failed(api::TaskError {
                    message,
                    ..Default::default()
                })
            }
            Behaviour::Forge => {
                let _ = self.report_success(&attempt, &forge(&finished)).await;
                AttemptOutcome::succeeded()
            }
            Behaviour::Hang => {
                attempt.disable_heartbeats();
                std::future::pending().await
            }
            Behaviour::Freeze => {
                // The client reports a start after 100 ms.
                tokio::time::sleep(Duration::from_millis(500)).await;
                attempt.disable_heartbeats();
                std::future::pending().await
            }
            Behaviour::Deaf { ms } => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                AttemptOutcome::succeeded()
            }
            Behaviour::Skip => AttemptOutcome::skipped("there is nothing to do"),
            Behaviour::GiveBack if attempt.envelope().attempt == 1 => AttemptOutcome::interrupted(),
            Behaviour::GiveBack => AttemptOutcome::succeeded(),
            Behaviour::Items { count } => AttemptOutcome::succeeded().with_report(|report| {
                let items_json = (0..count).map(|n| n.to_string()).collect();
                report.items = Some(api::MappedItems {
                    count,
                    items_json,
                    uri: String::new(),
                });
            }),
            Behaviour::BlockedByCheck => AttemptOutcome::succeeded()
                .with_report(|report| report.gating = api::Gating::Block.into()),
            Behaviour::Quarantine => AttemptOutcome::succeeded()
                .with_report(|report| report.gating = api::Gating::Quarantine.into()),
            Behaviour::Commit { marker, ms } => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                match commit(attempt.envelope(), marker) {
                    Ok(output) => AttemptOutcome::succeeded()
                        .with_report(|report| report.outputs = vec![output]),
                    Err(error) => AttemptOutcome::failed(api::TaskError {
                        message: format!("{error:#}"),
                        ..Default::default()
                    }),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(handler: Option<(&str, &str)>, asset: &str, expected: Behaviour) {
        let target = handler.map(|(name, config)| {
            api::code_ref::Target::Handler(api::Handler {
                name: name.into(),
                config_json: config.into(),
            })
        });
        let code = target.map(|target| api::CodeRef {
            target: Some(target),
            ..Default::default()
        });
        let envelope = api::TaskEnvelope {
            code,
            asset_config_json: asset.into(),
            ..Default::default()
        };
        assert_eq!(Behaviour::of(&envelope), expected);
    }

    #[test]
    fn a_forged_path_differs_only_in_its_signature() {
        assert_eq!(forge("/finished?kid=a&sig=xyz"), "/finished?kid=a&sig=Ayz");
        assert_eq!(forge("/finished?kid=a&sig=Ayz"), "/finished?kid=a&sig=Byz");
    }

    #[test]
    fn configuration_selects_the_behaviour() {
        check(None, "", Behaviour::Noop);
        check(Some(("hang", "")), "", Behaviour::Hang);
        check(
            None,
            r#"{"do": "sleep", "ms": 5}"#,
            Behaviour::Sleep { ms: 5 },
        );
        check(
            Some(("sleep", r#"{"ms": 7}"#)),
            r#"{"do": "die"}"#,
            Behaviour::Sleep { ms: 7 },
        );
        let transient = api::ErrorCategory::Transient;
        check(
            None,
            r#"{"do": "fail", "category": "transient", "times": 2}"#,
            Behaviour::Fail {
                category: transient,
                times: 2,
            },
        );
    }
}
