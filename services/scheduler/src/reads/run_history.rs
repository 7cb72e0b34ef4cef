//! The history of a run, folded from its events, because rows contain only the present state.

use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::{Position, ShardId, Stream, TaskRef};
use servo_proto::v1::event::Body;
use servo_proto::{proto_time, v1 as pb};
use servo_store::{Event, TenantTx};

use super::errors;
use super::replay::{Replay, ReplayStep};
use crate::core::{Changes, Plan, TaskChange, Verdict};
use crate::store::events::{self, RunEvents};
use crate::store::runs::RunRecord;
use crate::wire;

/// The transitions of a run and, on request, of one of its tasks.
#[derive(Debug, Default)]
pub(crate) struct RunHistory {
    pub(crate) run: Vec<pb::RunTransition>,
    pub(crate) task: Vec<pb::TaskTransition>,
    pub(crate) attempts: Vec<pb::Attempt>,
}

/// Reads the events of a run and folds them again.
pub(crate) async fn read(
    tx: &mut TenantTx,
    record: &RunRecord,
    plan: Option<&Arc<Plan>>,
    task: Option<TaskRef>,
) -> Result<RunHistory, Error> {
    let events = read_events(tx, record, Position::START, Position::MAX).await?;
    fold_history(&events, record.run_number, plan, task)
        .map_err(|fault| Error::new(Reason::Internal, fault))
}

/// Reads the run's events after one position of its shard and up to another.
pub(crate) async fn read_events(
    tx: &mut TenantTx,
    record: &RunRecord,
    after: Position,
    until: Position,
) -> Result<Vec<Event>, Error> {
    let (shard, first) = first_event(record.run_number);
    let events = RunEvents {
        run_id: record.run_id,
        shard,
        positions: (first.max(after.next()), until),
        created_at: record.created_at,
        ended_at: record.ended_at,
    };
    events::list_of_run(tx, events).await.map_err(errors::store)
}

/// The shard and position of a run's first event, from which its number is derived.
pub(crate) fn first_event(run_number: i64) -> (ShardId, Position) {
    let count = i64::from(Stream::Execution.shard_count());
    let shard = u32::try_from(run_number.rem_euclid(count))
        .ok()
        .and_then(|number| Stream::Execution.shard(number))
        .expect("a remainder of the number of shards is a shard");
    let position = Position::new(run_number.div_euclid(count));
    (shard, position.unwrap_or_default())
}

fn fold_history(
    events: &[Event],
    number: i64,
    plan: Option<&Arc<Plan>>,
    task: Option<TaskRef>,
) -> Result<RunHistory, String> {
    let mut history = RunHistory::default();
    let mut replay = Replay::new(number, plan.cloned());
    for event in events {
        let Some(step) = replay.fold(event)? else {
            continue;
        };
        let run_changes = step.changes.run_history.iter();
        history.run.extend(
            run_changes.map(|(from, to, reason)| run_transition(*from, (*to, *reason), event)),
        );
        if let Some(task_ref) = task {
            let own = step
                .changes
                .history
                .iter()
                .filter(|change| change.task_ref == task_ref);
            history
                .task
                .extend(own.map(|change| task_transition(change, &step.body, event)));
            note_attempt(&mut history.attempts, task_ref, event, &step);
        }
    }
    Ok(history)
}

fn run_transition(
    from: Option<servo_model::states::RunState>,
    (to, reason): (
        servo_model::states::RunState,
        servo_model::states::TransitionReason,
    ),
    event: &Event,
) -> pb::RunTransition {
    pb::RunTransition {
        from_state: from.map_or(0, |from| i32::from(from.code())),
        to_state: i32::from(to.code()),
        reason: i32::from(reason.code()),
        time: Some(proto_time(event.recorded_at)),
        event_id: wire::ulid(event.event_id),
        detail: String::new(),
    }
}

fn task_transition(change: &TaskChange, body: &Body, event: &Event) -> pb::TaskTransition {
    pb::TaskTransition {
        from_state: i32::from(change.from.code()),
        to_state: i32::from(change.to.code()),
        reason: i32::from(change.reason.code()),
        time: Some(proto_time(event.recorded_at)),
        event_id: wire::ulid(event.event_id),
        attempt: change.attempt,
        detail: detail(body),
    }
}

/// The error message, the reason for a skip, or the principal.
fn detail(body: &Body) -> String {
    match body {
        Body::TaskFinished(finished) => finished
            .error
            .as_ref()
            .map_or_else(|| finished.skip_reason.clone(), |e| e.message.clone()),
        Body::RunCancelRequested(cancel) => principal(cancel.requested_by.as_ref()),
        Body::TaskForceCancelled(force) => principal(force.requested_by.as_ref()),
        _ => String::new(),
    }
}

fn principal(actor: Option<&pb::Actor>) -> String {
    actor.map_or_else(String::new, |actor| actor.principal.clone())
}

/// Adds what an event says about the task's attempts.
fn note_attempt(
    attempts: &mut Vec<pb::Attempt>,
    task_ref: TaskRef,
    event: &Event,
    step: &ReplayStep,
) {
    let ReplayStep {
        body,
        verdict,
        changes,
    } = step;
    let at = Some(proto_time(event.recorded_at));
    let own = |task: Option<pb::TaskRef>| task.map(wire::task_ref_from_proto) == Some(task_ref);
    match body {
        Body::DispatchRequested(claim) if own(claim.task) && *verdict == Verdict::Folded => {
            attempts.push(pb::Attempt {
                attempt_id: claim.attempt_id.clone(),
                attempt: claim.attempt,
                worker_id: claim.worker_id.clone(),
                dispatch_time: at,
                ..Default::default()
            })
        }
        Body::TaskStarted(started) if own(started.task) => {
            if let Some(attempt) = attempts
                .iter_mut()
                .find(|a| a.attempt_id == started.attempt_id)
            {
                attempt.session.clone_from(&started.session);
                attempt.start_time = started.start_time.or(at);
            }
        }
        Body::TaskFinished(finished) if own(finished.task) => {
            let Some(attempt) = attempts
                .iter_mut()
                .find(|a| a.attempt_id == finished.attempt_id)
            else {
                return;
            };
            attempt.late = *verdict != Verdict::Folded;
            attempt.outcome = finished.outcome;
            attempt.session.clone_from(&finished.session);
            attempt.start_time = finished.start_time.or(attempt.start_time);
            attempt.end_time = finished.end_time.or(at);
            attempt.error.clone_from(&finished.error);
            attempt.skip_reason.clone_from(&finished.skip_reason);
            attempt.usage.clone_from(&finished.usage);
            attempt.outputs.clone_from(&finished.outputs);
            attempt.checks.clone_from(&finished.checks);
            attempt.reason = reason_of(changes, task_ref);
        }
        Body::TimerFired(fired) if own(fired.task) && *verdict == Verdict::Folded => {
            if let Some(attempt) = attempts
                .iter_mut()
                .find(|a| a.attempt_id == fired.attempt_id && a.end_time.is_none())
            {
                attempt.end_time = at;
                attempt.reason = reason_of(changes, task_ref);
            }
        }
        Body::TaskForceCancelled(force) if own(force.task) && *verdict == Verdict::Folded => {
            if let Some(attempt) = attempts
                .iter_mut()
                .find(|a| a.attempt_id == force.attempt_id)
            {
                attempt.end_time = at;
                attempt.reason = reason_of(changes, task_ref);
            }
        }
        _ => {}
    }
}

fn reason_of(changes: &Changes, task_ref: TaskRef) -> i32 {
    let own = changes
        .history
        .iter()
        .find(|change| change.task_ref == task_ref);
    own.map_or(0, |change| i32::from(change.reason.code()))
}
