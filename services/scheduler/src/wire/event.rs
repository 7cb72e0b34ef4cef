//! Events of a run that exists.

use std::collections::BTreeSet;
use std::sync::Arc;

use prost::Message;
use servo_model::limits::{CHECKS_PER_ATTEMPT_MAX, MAPPED_ITEMS_PER_TASK_MAX};
use servo_model::retry::ErrorCategory;
use servo_model::{AttemptId, Digest, TaskRef, WorkerId};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;

use super::request::micros;
use super::task_ref::task_ref_from_proto;
use crate::core::{CheckFinding, Event, Finished, Outcome, Output, Plan, Session, Time, TimerKind};

/// Why an event of the ledger cannot be folded. Its run is set aside for an operator.
#[derive(Debug, thiserror::Error)]
#[error("{event}: {fault}")]
pub(crate) struct BadEvent {
    pub event: &'static str,
    pub fault: String,
}

/// The body of a payload.
pub(crate) fn body_of(payload: &[u8]) -> Result<(Body, Option<pb::TraceContext>), BadEvent> {
    let event = pb::Event::decode(payload).map_err(|e| bad("event", e))?;
    if event.version != 1 {
        return Err(bad(
            "event",
            format!("version {} is not known here", event.version),
        ));
    }
    let body = event
        .body
        .ok_or_else(|| bad("event", "its body is of a type that is not known here"))?;
    Ok((body, event.trace))
}

/// The event as the fold takes it; `graph` is the plan that a PlanCreated names.
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
        Body::DispatchRequested(claim) => Event::Claimed {
            task: task(claim.task, "DispatchRequested")?,
            attempt: claim.attempt,
            attempt_id: attempt(&claim.attempt_id, "DispatchRequested")?,
            worker: worker(&claim.worker_id),
            pushed: claim.mode() == pb::DispatchMode::Push,
            ack_us: claim.ack_timeout.as_ref().map_or(0, micros),
        },
        Body::DispatchEnqueued(entry) => Event::Enqueued {
            task: task(entry.task, "DispatchEnqueued")?,
            attempt_id: attempt(&entry.attempt_id, "DispatchEnqueued")?,
        },
        Body::TaskStarted(started) => Event::Started {
            task: task(started.task, "TaskStarted")?,
            attempt_id: attempt(&started.attempt_id, "TaskStarted")?,
            worker: worker(&started.worker_id),
            session: session(&started.session),
        },
        Body::TaskFinished(finished) => Event::Finished(Box::new(from_finished(finished)?)),
        Body::TimerFired(fired) => Event::Timer {
            kind: timer_kind(fired.kind())?,
            task: fired.task.map(task_ref_from_proto),
            attempt_id: match fired.attempt_id.is_empty() {
                true => None,
                false => Some(attempt(&fired.attempt_id, "TimerFired")?),
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
        _ => return Err(bad("event", "it is no event of a run under way")),
    })
}

/// Takes whatever stands in the ledger: the callback refuses what is out of bounds, and what it did not refuse once is
/// brought within them here.
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
            .map(check_found)
            .collect(),
        error: finished
            .error
            .as_ref()
            .map_or_else(Vec::new, Message::encode_to_vec),
        message: match error.message.is_empty() {
            true => "it failed without a word".to_owned(),
            false => storable(&error.message),
        },
    })
}

/// In microseconds since 1970, within the years that rows can hold.
fn time_within(time: &prost_types::Timestamp) -> Time {
    const LAST_SECOND: i64 = 253_402_300_799;
    time.seconds.clamp(0, LAST_SECOND) * 1_000_000
        + i64::from(time.nanos.clamp(0, 999_999_999)) / 1_000
}

/// How many children are made for them.
pub(crate) fn item_count(items: &pb::MappedItems) -> u32 {
    items.count.min(MAPPED_ITEMS_PER_TASK_MAX as u32)
}

/// A text that a row can hold.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// One of each asset, as rows have it.
fn outputs(finished: &pb::TaskFinished) -> Vec<Output> {
    let mut seen = BTreeSet::new();
    let first = finished
        .outputs
        .iter()
        .filter(|output| seen.insert(output.asset_key.as_str()));
    first.map(|output| made(output, finished.gating)).collect()
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
        (pb::Outcome::Unspecified, _) => return Err(bad("TaskFinished", "outcome is not given")),
    })
}

fn category(category: pb::ErrorCategory) -> ErrorCategory {
    i16::try_from(category as i32)
        .ok()
        .and_then(ErrorCategory::from_code)
        .unwrap_or(ErrorCategory::UserCode)
}

/// Without gating everything is allowed.
fn made(output: &pb::Output, gating: i32) -> Output {
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

/// Without a severity it is an ERROR.
fn check_found(check: &pb::CheckResult) -> CheckFinding {
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
        pb::TimerKind::Unspecified => return Err(bad("TimerFired", "kind is not given")),
    })
}

fn task(task: Option<pb::TaskRef>, event: &'static str) -> Result<TaskRef, BadEvent> {
    task.map(task_ref_from_proto)
        .ok_or_else(|| bad(event, "task is not given"))
}

fn attempt(text: &str, event: &'static str) -> Result<AttemptId, BadEvent> {
    text.parse()
        .map_err(|e| bad(event, format!("attempt_id: {e}")))
}

/// Who did it is told and decides nothing: a name that is none counts as not given.
fn worker(text: &str) -> Option<[u8; 16]> {
    text.parse::<WorkerId>().ok().map(|id| *id.as_bytes())
}

/// Only compared, never shown: a hash is as good as the name.
fn session(name: &str) -> Session {
    let hash = Digest::of(name);
    u64::from_be_bytes(*hash.as_bytes().first_chunk().expect("32 bytes have 8"))
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

    /// Lies that stood in a ledger before the callback refused them.
    #[test]
    fn whatever_an_outcome_says_it_can_be_folded_and_stored() {
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
        let told = from_finished(&finished).unwrap();
        assert_eq!(
            (told.started_at, told.worker, told.message.as_str()),
            (Some(0), None, "a\u{fffd}b")
        );
        assert_eq!(
            told.outputs
                .iter()
                .map(|made| &*made.asset_key)
                .collect::<Vec<_>>(),
            ["n/a", "n/\u{fffd}"]
        );
        assert_eq!(
            (told.items.unwrap().0, told.checks.len()),
            (10_000, CHECKS_PER_ATTEMPT_MAX)
        );
        assert_eq!(told.checks[0].name, "\u{fffd}");
        let late = prost_types::Timestamp {
            seconds: i64::MAX,
            nanos: i32::MAX,
        };
        assert!(time_within(&late) < 253_402_300_800_000_000);
    }
}
