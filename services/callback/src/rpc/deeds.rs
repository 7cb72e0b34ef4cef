//! The four things a worker says about its attempt.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost::Message;
use servo_mesh::{Error, Reason};
use servo_model::Digest;
use servo_model::limits::{HEARTBEAT_TIMEOUT, MANIFEST_TIME_MAX};
use servo_model::presign::{CallbackPath, CallbackVerb};
use servo_proto::v1;
use servo_proto::v1::attempt_report::Report;
use uuid::Uuid;

use super::{Callback, outcome};
use crate::beats::{Beat, Standing};
use crate::core::{Names, Refused, Shown};
use crate::logs::Lines;

const LINES_MAX: usize = 1_000;
const LINES_BYTES_MAX: usize = 1 << 20;
/// As `LogLine.text` promises.
const LINE_BYTES_MAX: usize = 16 << 10;
/// All of it, in millionths.
const WHOLE_PPM: u32 = 1_000_000;
const PROGRESS_BYTES_MAX: usize = 512;
/// Of a second.
const NANOS_MAX: u32 = 999_999_999;
/// Time for user code to stop before it is ended.
const CANCEL_GRACE_SECONDS: i64 = 30;

impl Callback {
    pub(crate) async fn start(
        &self,
        shown: Shown<'_>,
        asked: v1::StartAttemptRequest,
        trace: Option<v1::TraceContext>,
    ) -> Result<v1::StartAttemptResponse, Error> {
        let names = names(
            &asked.tenant,
            &asked.workspace,
            &asked.run_id,
            &asked.attempt_id,
        );
        let path = self.admit(shown, CallbackVerb::Start, names)?;
        outcome::attempt(asked.task.as_ref(), &asked.worker_id)?;
        outcome::time("start_time", asked.start_time.as_ref())?;
        let renewed = Some(self.renewed(&path, heartbeat_timeout(asked.heartbeat_timeout)?));
        let asks_permission = asked.mode() == v1::DispatchMode::Push;
        let started = v1::TaskStarted {
            run_id: asked.run_id,
            task: asked.task,
            attempt_id: asked.attempt_id,
            worker_id: asked.worker_id,
            session: asked.session,
            start_time: asked.start_time,
        };
        let verdict = self.forward(&path, Report::Started(started), trace).await?;
        // What nobody has folded may be found stale: it may have run out of time while nobody held its shard.
        if asks_permission && verdict.acceptance() == v1::Acceptance::Recorded {
            let message =
                "the start is recorded, and nobody has said yet that it counts; ask again";
            return Err(Error::new(Reason::NotReady, message));
        }
        Ok(v1::StartAttemptResponse {
            acceptance: verdict.acceptance,
            renewed,
            accepted_event_id: verdict.event_id,
        })
    }

    pub(crate) async fn finish(
        &self,
        shown: Shown<'_>,
        asked: v1::FinishAttemptRequest,
        trace: Option<v1::TraceContext>,
    ) -> Result<v1::FinishAttemptResponse, Error> {
        let names = names(
            &asked.tenant,
            &asked.workspace,
            &asked.run_id,
            &asked.attempt_id,
        );
        let path = self.admit(shown, CallbackVerb::Finished, names)?;
        if asked.outcome() == v1::Outcome::Unspecified {
            return Err(Error::bad_field(
                "outcome",
                "is not given; say how the attempt ended",
            ));
        }
        let mut finished = v1::TaskFinished {
            run_id: asked.run_id,
            task: asked.task,
            attempt_id: asked.attempt_id,
            worker_id: asked.worker_id,
            session: asked.session,
            start_time: asked.start_time,
            end_time: asked.end_time,
            outcome: asked.outcome,
            error: asked.error,
            skip_reason: asked.skip_reason,
            outputs: asked.outputs,
            checks: asked.checks,
            gating: asked.gating,
            usage: asked.usage,
            items: asked.items,
            sensor: asked.sensor,
            // Whoever holds the run's shard looks.
            has_good_version: false,
        };
        outcome::check(&mut finished)?;
        if finished.outcome() == v1::Outcome::Succeeded && !finished.outputs.is_empty() {
            self.outputs.check(&path, &finished.outputs).await?;
        }
        let checked = (!finished.checks.is_empty()).then(|| finished.checks.clone());
        let asset_key = finished
            .outputs
            .first()
            .map(|output| output.asset_key.clone())
            .unwrap_or_default();
        let verdict = self
            .forward(&path, Report::Finished(finished), trace)
            .await?;
        if let (Some(checks), v1::Acceptance::Folded | v1::Acceptance::Recorded) =
            (checked, verdict.acceptance())
        {
            self.metrics
                .note_checks(path.tenant.as_str(), &asset_key, &checks);
        }
        Ok(v1::FinishAttemptResponse {
            acceptance: verdict.acceptance,
            accepted_event_id: verdict.event_id,
        })
    }

    pub(crate) async fn beat(
        &self,
        shown: Shown<'_>,
        asked: v1::HeartbeatRequest,
    ) -> Result<v1::HeartbeatResponse, Error> {
        let names = names(
            &asked.tenant,
            &asked.workspace,
            &asked.run_id,
            &asked.attempt_id,
        );
        let path = self.admit(shown, CallbackVerb::Heartbeat, names)?;
        let task = asked
            .task
            .ok_or_else(|| Error::bad_field("task", "is not given; the envelope names it"))?;
        let timeout = heartbeat_timeout(asked.heartbeat_timeout)?;
        let small = |number: u32, field: &str| {
            i32::try_from(number).map_err(|_| Error::bad_field(field, "is larger than any task's"))
        };
        let beat = Beat {
            tenant: asked.tenant,
            run: path.run,
            attempt: path.attempt,
            ordinal: small(task.ordinal, "task.ordinal")?,
            item: task
                .map_index
                .map_or(Ok(-1), |item| small(item, "task.map_index"))?,
            progress_ppm: asked
                .progress_ppm
                .map(|ppm| ppm.min(WHOLE_PPM).cast_signed()),
            progress_message: outcome::short(&asked.progress_message, PROGRESS_BYTES_MAX),
        };
        let standing = self
            .beats
            .beat(beat)
            .await
            .map_err(|why| Error::new(Reason::NotReady, why))?;
        let should_cancel = match standing {
            Standing::GoOn => false,
            Standing::Stop => true,
            Standing::Stale => {
                return Err(Error::new(
                    Reason::StaleAttempt,
                    "the attempt is no longer the task's active one; stop it",
                ));
            }
            Standing::Unknown => {
                return Err(Error::new(
                    Reason::AttemptUnknown,
                    "the attempt is unknown to its run; stop it",
                ));
            }
        };
        let interval = self.door.interval();
        Ok(v1::HeartbeatResponse {
            should_cancel,
            cancel_grace: Some(prost_types::Duration {
                seconds: CANCEL_GRACE_SECONDS,
                nanos: 0,
            }),
            renewed: Some(self.renewed(&path, timeout)),
            interval: Some(prost_types::Duration {
                seconds: interval.as_secs().cast_signed(),
                nanos: interval.subsec_nanos().cast_signed(),
            }),
        })
    }

    pub(crate) async fn append(
        &self,
        shown: Shown<'_>,
        asked: v1::AppendLogsRequest,
    ) -> Result<v1::AppendLogsResponse, Error> {
        let names = names(
            &asked.tenant,
            &asked.workspace,
            &asked.run_id,
            &asked.attempt_id,
        );
        let path = self.admit(shown, CallbackVerb::Logs, names)?;
        let mut lines = asked.lines;
        lines
            .iter_mut()
            .for_each(|line| outcome::cut(&mut line.text, LINE_BYTES_MAX));
        let kept = v1::AppendLogsRequest {
            lines,
            dropped_lines: asked.dropped_lines,
            ..Default::default()
        };
        let (count, lines) = (kept.lines.len(), kept.encode_to_vec());
        if count > LINES_MAX || lines.len() > LINES_BYTES_MAX {
            let message = format!(
                "a batch of {count} lines and {} bytes is too large; send at most {LINES_MAX} lines and {LINES_BYTES_MAX} bytes",
                lines.len()
            );
            return Err(Error::new(Reason::MessageTooLarge, message));
        }
        if !self.logs.has_room(path.attempt, count, lines.len()) {
            return Ok(v1::AppendLogsResponse {
                rejected_lines: count as u64,
            });
        }
        let session = Digest::of(&asked.session);
        let session =
            i64::from_be_bytes(*session.as_bytes().first_chunk().expect("32 bytes have 8"));
        let stored = self.logs.append(Lines {
            tenant: asked.tenant,
            workspace: asked.workspace,
            run: Uuid::from_bytes(*path.run.as_bytes()),
            attempt: Uuid::from_bytes(*path.attempt.as_bytes()),
            session,
            sequence: i64::try_from(asked.sequence).unwrap_or(i64::MAX),
            lines,
        });
        stored
            .await
            .map_err(|why| Error::new(Reason::NotReady, why))?;
        self.metrics.note_lines(path.tenant.as_str(), count);
        Ok(v1::AppendLogsResponse { rejected_lines: 0 })
    }

    fn admit(
        &self,
        shown: Shown<'_>,
        verb: CallbackVerb,
        names: Names<'_>,
    ) -> Result<CallbackPath, Error> {
        self.door.admit(shown, verb, names, now()).map_err(shut_out)
    }

    /// Whether the call shows a signature for its verb; what it says of itself is looked at later.
    pub(crate) fn is_signed(&self, shown: Shown<'_>, verb: CallbackVerb) -> Result<(), Error> {
        self.door
            .signed(shown, verb, now())
            .map(drop)
            .map_err(shut_out)
    }

    fn renewed(&self, path: &CallbackPath, heartbeat_timeout: Duration) -> v1::RenewedPaths {
        let renew = |verb| self.door.renew(path, verb, heartbeat_timeout, now());
        v1::RenewedPaths {
            heartbeat: renew(CallbackVerb::Heartbeat),
            logs: renew(CallbackVerb::Logs),
        }
    }

    /// The verdict, unless it is a refusal.
    async fn forward(
        &self,
        path: &CallbackPath,
        report: Report,
        trace: Option<v1::TraceContext>,
    ) -> Result<v1::AttemptVerdict, Error> {
        let report = v1::AttemptReport {
            tenant: path.tenant.to_string(),
            workspace: path.workspace.to_string(),
            event_id: String::new(),
            report: Some(report),
            trace,
        };
        let kind = path.verb.name();
        let verdict = self.forward.report(path.run, path.attempt, report).await?;
        self.metrics.note_report(kind, verdict.acceptance());
        match verdict.acceptance() {
            v1::Acceptance::Refused => Err(Error::new(verdict.refusal(), verdict.message)),
            _ => Ok(verdict),
        }
    }
}

fn shut_out(refused: Refused) -> Error {
    let reason = if refused.is_expired() {
        Reason::SignatureExpired
    } else {
        Reason::SignatureInvalid
    };
    Error::new(reason, refused.to_string())
}

/// What the worker read in its envelope. Within what a manifest may say it is believed: nothing but the life of the
/// attempt's own signatures follows from it.
fn heartbeat_timeout(said: Option<prost_types::Duration>) -> Result<Duration, Error> {
    let Some(prost_types::Duration { seconds, nanos }) = said else {
        return Ok(HEARTBEAT_TIMEOUT);
    };
    let seconds = u64::try_from(seconds)
        .ok()
        .filter(|seconds| *seconds <= MANIFEST_TIME_MAX.as_secs());
    let nanos = u32::try_from(nanos)
        .ok()
        .filter(|nanos| *nanos <= NANOS_MAX);
    let timeout = seconds
        .zip(nanos)
        .map(|(seconds, nanos)| Duration::new(seconds, nanos));
    timeout.filter(|timeout| !timeout.is_zero()).ok_or_else(|| {
        let told = "is zero, negative or longer than 366 days; send the envelope's timeouts.heartbeat as it is, or leave it out";
        Error::bad_field("heartbeat_timeout", told)
    })
}

fn names<'a>(
    tenant: &'a str,
    workspace: &'a str,
    run_id: &'a str,
    attempt_id: &'a str,
) -> Names<'a> {
    Names {
        tenant,
        workspace,
        run_id,
        attempt_id,
    }
}

/// Signatures live by the clock; some difference between clocks is allowed for.
fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs().cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_timeout_is_what_a_manifest_may_say() {
        let said =
            |seconds, nanos| heartbeat_timeout(Some(prost_types::Duration { seconds, nanos }));
        let year = MANIFEST_TIME_MAX.as_secs().cast_signed();
        assert_eq!(heartbeat_timeout(None).unwrap(), HEARTBEAT_TIMEOUT);
        assert_eq!(said(0, 1).unwrap(), Duration::from_nanos(1));
        assert_eq!(said(year, 0).unwrap(), MANIFEST_TIME_MAX);
        for (seconds, nanos) in [
            (0, 0),
            (-1, 0),
            (0, -1),
            (1, i32::MAX),
            (year + 1, 0),
            (i64::MAX, 0),
            (i64::MIN, i32::MIN),
        ] {
            let told = said(seconds, nanos).unwrap_err().to_string();
            let words = [
                "heartbeat_timeout",
                "longer than 366 days",
                "timeouts.heartbeat as it is",
            ];
            assert!(
                words.iter().all(|word| told.contains(word)),
                "{seconds} s, {nanos} ns: {told}"
            );
        }
    }
}
