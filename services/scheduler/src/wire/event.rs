//! Events of a run that exists.

use std::sync::Arc;

use prost::Message;
use servo_model::retry::ErrorCategory;
use servo_model::{AttemptId, Digest, WorkerId};
use servo_proto::v1;
use servo_proto::v1::event::Body;

use super::request::micros;
use super::task_ref::slot;
use crate::core::{CheckFound, Event, Finished, Graph, Made, Outcome, Session, Slot, TimerKind};

/// Why an event of the ledger cannot be folded. Its run is set aside for an operator.
#[derive(Debug, thiserror::Error)]
#[error("{event}: {fault}")]
pub(crate) struct BadEvent {
    pub event: &'static str,
    pub fault: String,
}

/// The body of a payload.
pub(crate) fn body_of(payload: &[u8]) -> Result<(Body, Option<v1::TraceContext>), BadEvent> {
    let event = v1::Event::decode(payload).map_err(|e| bad("event", e))?;
    if event.version != 1 {
        return Err(bad("event", format!("version {} is not known here", event.version)));
    }
    let body = event.body.ok_or_else(|| bad("event", "its body is of a type that is not known here"))?;
    Ok((body, event.trace))
}

/// The event as the fold takes it; `graph` is the plan that a PlanCreated names.
pub(crate) fn from_body(body: &Body, graph: Option<&Arc<Graph>>) -> Result<Event, BadEvent> {
    Ok(match body {
        Body::PlanCreated(created) => {
            let missing = || bad("PlanCreated", format!("plan {} is not stored", created.plan_id));
            Event::PlanCreated { graph: graph.ok_or_else(missing)?.clone() }
        }
        Body::PlanFailed(failed) => Event::PlanFailed { message: failed.message.clone() },
        Body::DispatchRequested(claim) => Event::Claimed {
            task: task(claim.task, "DispatchRequested")?,
            attempt: claim.attempt,
            attempt_id: attempt(&claim.attempt_id, "DispatchRequested")?,
            worker: worker(&claim.worker_id, "DispatchRequested")?,
            pushed: claim.mode() == v1::DispatchMode::Push,
            ack_us: claim.ack_timeout.as_ref().map_or(0, micros),
        },
        Body::DispatchEnqueued(entry) => Event::Enqueued {
            task: task(entry.task, "DispatchEnqueued")?,
            attempt_id: attempt(&entry.attempt_id, "DispatchEnqueued")?,
        },
        Body::TaskStarted(started) => Event::Started {
            task: task(started.task, "TaskStarted")?,
            attempt_id: attempt(&started.attempt_id, "TaskStarted")?,
            worker: worker(&started.worker_id, "TaskStarted")?,
            session: session(&started.session),
        },
        Body::TaskFinished(finished) => Event::Finished(Box::new(from_finished(finished)?)),
        Body::TimerFired(fired) => Event::Timer {
            kind: timer_kind(fired.kind())?,
            task: fired.task.map(slot),
            attempt_id: match fired.attempt_id.is_empty() {
                true => None,
                false => Some(attempt(&fired.attempt_id, "TimerFired")?),
            },
        },
        Body::RunCancelRequested(cancel) => {
            Event::CancelRequested { version: cancel.version, by_system: cancel.by_system }
        }
        Body::RunPaused(paused) => Event::Paused { version: paused.version },
        Body::RunResumed(resumed) => Event::Resumed { version: resumed.version },
        Body::TaskForceCancelled(force) => Event::ForceCancelled {
            task: task(force.task, "TaskForceCancelled")?,
            attempt_id: attempt(&force.attempt_id, "TaskForceCancelled")?,
            version: force.version,
        },
        _ => return Err(bad("event", "it is no event of a run under way")),
    })
}

fn from_finished(finished: &v1::TaskFinished) -> Result<Finished, BadEvent> {
    let error = finished.error.clone().unwrap_or_default();
    Ok(Finished {
        task: task(finished.task, "TaskFinished")?,
        attempt_id: attempt(&finished.attempt_id, "TaskFinished")?,
        worker: worker(&finished.worker_id, "TaskFinished")?,
        session: session(&finished.session),
        started_at: finished.start_time.map(|time| time.seconds * 1_000_000 + i64::from(time.nanos) / 1_000),
        outcome: outcome(finished, &error)?,
        outputs: finished.outputs.iter().map(|output| made(output, finished.gating)).collect(),
        items: finished.items.as_ref().map(|items| (items.count, items.encode_to_vec().into())),
        checks: finished.checks.iter().map(check_found).collect(),
        error: finished.error.as_ref().map_or_else(Vec::new, Message::encode_to_vec),
        message: if error.message.is_empty() { "it failed without a word".to_owned() } else { error.message },
    })
}

fn outcome(finished: &v1::TaskFinished, error: &v1::TaskError) -> Result<Outcome, BadEvent> {
    Ok(match (finished.outcome(), finished.gating()) {
        (v1::Outcome::Succeeded, v1::Gating::Block) => Outcome::CheckFailed,
        (v1::Outcome::Succeeded, v1::Gating::Quarantine) => {
            Outcome::Quarantined { has_good_version: finished.has_good_version }
        }
        (v1::Outcome::Succeeded, _) => Outcome::Succeeded,
        (v1::Outcome::Failed, _) => Outcome::Failed {
            category: category(error.category()),
            error_type: error.r#type.clone(),
            retriable: error.retriable,
        },
        (v1::Outcome::Skipped, _) => Outcome::Skipped,
        (v1::Outcome::Cancelled, _) => Outcome::Cancelled,
        (v1::Outcome::Interrupted, _) => Outcome::Interrupted,
        (v1::Outcome::Unspecified, _) => return Err(bad("TaskFinished", "outcome is not given")),
    })
}

fn category(category: v1::ErrorCategory) -> ErrorCategory {
    i16::try_from(category as i32).ok().and_then(ErrorCategory::from_code).unwrap_or(ErrorCategory::UserCode)
}

/// Without gating everything is allowed.
fn made(output: &v1::Output, gating: i32) -> Made {
    let gating = if gating == 0 { v1::Gating::Allow.into() } else { gating };
    Made {
        asset_key: output.asset_key.clone(),
        partition_key: output.partition_key.clone(),
        code_version: output.code_version.clone(),
        output: v1::Output { gating, ..output.clone() }.encode_to_vec(),
    }
}

/// Without a severity it is an ERROR.
fn check_found(check: &v1::CheckResult) -> CheckFound {
    let severity = match check.severity() {
        v1::Severity::Unspecified => v1::Severity::Error,
        given => given,
    };
    CheckFound {
        name: check.name.clone(),
        passed: check.passed,
        severity: severity as i16,
        result: v1::CheckResult { severity: severity.into(), ..check.clone() }.encode_to_vec(),
    }
}

fn timer_kind(kind: v1::TimerKind) -> Result<TimerKind, BadEvent> {
    Ok(match kind {
        v1::TimerKind::Retry => TimerKind::Retry,
        v1::TimerKind::DispatchAck => TimerKind::DispatchAck,
        v1::TimerKind::Heartbeat => TimerKind::Heartbeat,
        v1::TimerKind::Execution => TimerKind::Execution,
        v1::TimerKind::RunDuration => TimerKind::RunDuration,
        v1::TimerKind::Unspecified => return Err(bad("TimerFired", "kind is not given")),
    })
}

fn task(task: Option<v1::TaskRef>, event: &'static str) -> Result<Slot, BadEvent> {
    task.map(slot).ok_or_else(|| bad(event, "task is not given"))
}

fn attempt(text: &str, event: &'static str) -> Result<AttemptId, BadEvent> {
    text.parse().map_err(|e| bad(event, format!("attempt_id: {e}")))
}

fn worker(text: &str, event: &'static str) -> Result<Option<[u8; 16]>, BadEvent> {
    if text.is_empty() {
        return Ok(None);
    }
    let id: WorkerId = text.parse().map_err(|e| bad(event, format!("worker_id: {e}")))?;
    Ok(Some(*id.as_bytes()))
}

/// Only compared, never shown: a hash is as good as the name.
fn session(name: &str) -> Session {
    let hash = Digest::of(name);
    u64::from_be_bytes(*hash.as_bytes().first_chunk().expect("32 bytes have 8"))
}

fn bad(event: &'static str, fault: impl ToString) -> BadEvent {
    BadEvent { event, fault: fault.to_string() }
}
