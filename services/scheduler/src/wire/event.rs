//! Events of a run that exists.

use std::collections::BTreeSet;
use std::sync::Arc;

use prost::Message;
use servo_model::limits::{CHECKS_PER_ATTEMPT_MAX, MAPPED_ITEMS_PER_TASK_MAX};
use servo_model::retry::ErrorCategory;
use servo_model::{AttemptId, Digest, TaskRef, Timestamp, WorkerId};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;

use super::request::micros;
use super::task_ref::task_ref_from_proto;
use crate::core::{CheckFinding, Event, Finished, Outcome, Output, Plan, Session, TimerKind};

/// Why an event cannot be folded. A command with such an event is refused; when the event is in the
/// ledger already, its run is set aside.
#[derive(Debug, thiserror::Error)]
#[error("{event}: {fault}")]
pub(crate) struct BadEvent {
    pub event: &'static str,
    pub fault: String,
}

/// Decodes the body and trace of a payload.
pub(crate) fn body_of(payload: &[u8]) -> Result<(Body, Option<pb::TraceContext>), BadEvent> {
    let event = pb::Event::decode(payload).map_err(|e| bad("event", e))?;
    if event.version != 1 {
        return Err(bad(
            "event",
            format!("version {} is unknown to this version", event.version),
        ));
    }
    let body = event
        .body
        .ok_or_else(|| bad("event", "the type of the body is unknown to this version"))?;
    Ok((body, event.trace))
}

/// Converts a body to the event of the fold; `plan` is the plan that a PlanCreated names.
pub(crate) fn from_body(body: &Body, plan: Option<&Arc<Plan>>) -> Result<Event, BadEvent> {
    Ok(match body {
        Body::PlanCreated(created) => {
            let missing = || {
                bad(
                    "PlanCreated",
                    format!("plan {} is not stored", created.plan_id),
                )
            };
            Event::PlanCreated {
                plan: plan.ok_or_else(missing)?.clone(),
            }
        }
        Body::PlanFailed(failed) => Event::PlanFailed {
            message: storable(&failed.message),
        },
        Body::DispatchRequested(claim) => Event::DispatchRequested {
            task: task(claim.task, "DispatchRequested")?,
            attempt: claim.attempt,
            attempt_id: attempt(&claim.attempt_id, "DispatchRequested")?,
            worker: worker(&claim.worker_id),
            pushed: claim.mode() == pb::DispatchMode::Push,
            ack_us: claim.ack_timeout.as_ref().map_or(0, micros),
        },
        Body::DispatchEnqueued(entry) => Event::DispatchEnqueued {
            task: task(entry.task, "DispatchEnqueued")?,
            attempt_id: attempt(&entry.attempt_id, "DispatchEnqueued")?,
        },
        Body::TaskStarted(started) => Event::TaskStarted {
            task: task(started.task, "TaskStarted")?,
            attempt_id: attempt(&started.attempt_id, "TaskStarted")?,
            worker: worker(&started.worker_id),
            session: session(&started.session),
        },
        Body::TaskFinished(finished) => Event::TaskFinished(Box::new(from_finished(finished)?)),
        Body::TimerFired(fired) => Event::TimerFired {
            kind: timer_kind(fired.kind())?,
            task: fired.task.map(task_ref_from_proto),
            attempt_id: if fired.attempt_id.is_empty() {
                None
            } else {
                Some(attempt(&fired.attempt_id, "TimerFired")?)
            },
        },
        Body::RunCancelRequested(cancel) => Event::CancelRequested {
            version: cancel.version,
            by_system: cancel.by_system,
        },
        Body::RunPaused(paused) => Event::Paused {
            version: paused.version,
        },
        Body::RunResumed(resumed) => Event::Resumed {
            version: resumed.version,
        },
        Body::TaskForceCancelled(force) => Event::ForceCancelled {
            task: task(force.task, "TaskForceCancelled")?,
            attempt_id: attempt(&force.attempt_id, "TaskForceCancelled")?,
            version: force.version,
        },
        _ => return Err(bad("event", "it is not an event of an open run")),
    })
}

/// Converts any recorded outcome. The callback refuses values that are out of bounds; values that
/// older versions recorded are brought within bounds here.
fn from_finished(finished: &pb::TaskFinished) -> Result<Finished, BadEvent> {
    let error = finished.error.clone().unwrap_or_default();
    Ok(Finished {
        task: task(finished.task, "TaskFinished")?,
        attempt_id: attempt(&finished.attempt_id, "TaskFinished")?,
        worker: worker(&finished.worker_id),
        session: session(&finished.session),
        started_at: finished.start_time.map(|time| time_within(&time)),
        outcome: outcome(finished, &error)?,
        outputs: outputs(finished),
        items: finished
            .items
            .as_ref()
            .map(|items| (item_count(items), items.encode_to_vec().into())),
        checks: finished
            .checks
            .iter()
            .take(CHECKS_PER_ATTEMPT_MAX)
            .map(check_finding)
            .collect(),
        error: finished
            .error
            .as_ref()
            .map_or_else(Vec::new, Message::encode_to_vec),
        message: if error.message.is_empty() {
            "the attempt failed without a message".to_owned()
        } else {
            storable(&error.message)
        },
    })
}

/// The nearest time from 1970 to the year 9999.
fn time_within(time: &prost_types::Timestamp) -> Timestamp {
    const LAST_SECOND: i64 = 253_402_300_799;
    Timestamp::from_unix_seconds(time.seconds.clamp(0, LAST_SECOND))
        .plus_us(i64::from(time.nanos.clamp(0, 999_999_999)) / 1_000)
}

/// How many mapped tasks the items create.
pub(crate) fn item_count(items: &pb::MappedItems) -> u32 {
    items.count.min(MAPPED_ITEMS_PER_TASK_MAX as u32)
}

/// Replaces NUL, which Postgres cannot store in a text.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The first output of each asset, because a row is unique per attempt and asset.
fn outputs(finished: &pb::TaskFinished) -> Vec<Output> {
    let mut seen = BTreeSet::new();
    let first = finished
        .outputs
        .iter()
        .filter(|output| seen.insert(output.asset_key.as_str()));
    first
        .map(|output| output_of(output, finished.gating))
        .collect()
}

fn outcome(finished: &pb::TaskFinished, error: &pb::TaskError) -> Result<Outcome, BadEvent> {
    Ok(match (finished.outcome(), finished.gating()) {
        (pb::Outcome::Succeeded, pb::Gating::Block) => Outcome::CheckFailed,
        (pb::Outcome::Succeeded, pb::Gating::Quarantine) => Outcome::Quarantined {
            has_good_version: finished.has_good_version,
        },
        (pb::Outcome::Succeeded, _) => Outcome::Succeeded,
        (pb::Outcome::Failed, _) => Outcome::Failed {
            category: category(error.category()),
            error_type: error.r#type.clone(),
            retriable: error.retriable,
        },
        (pb::Outcome::Skipped, _) => Outcome::Skipped,
        (pb::Outcome::Cancelled, _) => Outcome::Cancelled,
        (pb::Outcome::Interrupted, _) => Outcome::Interrupted,
        (pb::Outcome::Unspecified, _) => return Err(bad("TaskFinished", "the outcome is missing")),
    })
}

fn category(category: pb::ErrorCategory) -> ErrorCategory {
    i16::try_from(category as i32)
        .ok()
        .and_then(ErrorCategory::from_code)
        .unwrap_or(ErrorCategory::UserCode)
}

/// An output without gating is allowed.
fn output_of(output: &pb::Output, gating: i32) -> Output {
    let gating = if gating == 0 {
        pb::Gating::Allow.into()
    } else {
        gating
    };
    Output {
        asset_key: storable(&output.asset_key),
        partition_key: storable(&output.partition_key),
        code_version: storable(&output.code_version),
        output: pb::Output {
            gating,
            ..output.clone()
        }
        .encode_to_vec(),
    }
}

/// A check without a severity is an ERROR.
fn check_finding(check: &pb::CheckResult) -> CheckFinding {
    let severity = match check.severity() {
        pb::Severity::Unspecified => pb::Severity::Error,
        given => given,
    };
    CheckFinding {
        name: storable(&check.name),
        passed: check.passed,
        severity: severity as i16,
        result: pb::CheckResult {
            severity: severity.into(),
            ..check.clone()
        }
        .encode_to_vec(),
    }
}

fn timer_kind(kind: pb::TimerKind) -> Result<TimerKind, BadEvent> {
    Ok(match kind {
        pb::TimerKind::Retry => TimerKind::Retry,
        pb::TimerKind::DispatchAck => TimerKind::DispatchAck,
        pb::TimerKind::Heartbeat => TimerKind::Heartbeat,
        pb::TimerKind::Execution => TimerKind::Execution,
        pb::TimerKind::RunDuration => TimerKind::RunDuration,
        pb::TimerKind::Unspecified => return Err(bad("TimerFired", "the kind is missing")),
    })
}

fn task(task: Option<pb::TaskRef>, event: &'static str) -> Result<TaskRef, BadEvent> {
    task.map(task_ref_from_proto)
        .ok_or_else(|| bad(event, "the task is missing"))
}

fn attempt(text: &str, event: &'static str) -> Result<AttemptId, BadEvent> {
    text.parse()
        .map_err(|e| bad(event, format!("attempt_id: {e}")))
}

/// A malformed worker id counts as missing, because the worker only informs readers.
fn worker(text: &str) -> Option<[u8; 16]> {
    text.parse::<WorkerId>().ok().map(|id| *id.as_bytes())
}

/// Hashes the session name, which is only compared.
fn session(name: &str) -> Session {
    let hash = Digest::of(name);
    u64::from_be_bytes(
        *hash
            .as_bytes()
            .first_chunk()
            .expect("a digest has more than 8 bytes"),
    )
}

fn bad(event: &'static str, fault: impl ToString) -> BadEvent {
    BadEvent {
        event,
        fault: fault.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that older versions of the callback recorded.
    #[test]
    fn every_recorded_outcome_can_be_folded_and_stored() {
        let output = |key: &str| pb::Output {
            asset_key: key.to_owned(),
            ..Default::default()
        };
        let finished = pb::TaskFinished {
            task: Some(pb::TaskRef::default()),
            attempt_id: AttemptId::from_bytes([7; 16]).to_string(),
            worker_id: "nobody".to_owned(),
            start_time: Some(prost_types::Timestamp {
                seconds: i64::MIN,
                nanos: i32::MIN,
            }),
            outcome: pb::Outcome::Failed.into(),
            error: Some(pb::TaskError {
                message: "a\0b".to_owned(),
                ..Default::default()
            }),
            outputs: vec![output("n/a"), output("n/a"), output("n/\0")],
            items: Some(pb::MappedItems {
                count: u32::MAX,
                ..Default::default()
            }),
            checks: vec![
                pb::CheckResult {
                    name: "\0".to_owned(),
                    ..Default::default()
                };
                40_000
            ],
            ..Default::default()
        };
        let converted = from_finished(&finished).unwrap();
        assert_eq!(
            (
                converted.started_at,
                converted.worker,
                converted.message.as_str()
            ),
            (Some(Timestamp::UNIX_EPOCH), None, "a\u{fffd}b")
        );
        assert_eq!(
            converted
                .outputs
                .iter()
                .map(|made| &*made.asset_key)
                .collect::<Vec<_>>(),
            ["n/a", "n/\u{fffd}"]
        );
        assert_eq!(
            (converted.items.unwrap().0, converted.checks.len()),
            (10_000, CHECKS_PER_ATTEMPT_MAX)
        );
        assert_eq!(converted.checks[0].name, "\u{fffd}");
        let late = prost_types::Timestamp {
            seconds: i64::MAX,
            nanos: i32::MAX,
        };
        assert!(time_within(&late) < Timestamp::from_unix_seconds(253_402_300_800));
    }
}
