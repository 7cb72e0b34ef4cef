//! A run's history, folded from its events: the rows say how things stand, the ledger says how they came to be so.

use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::{Stream, TaskRef};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{Event, TenantTx, query};

use super::answer;
use crate::core::{Changes, Plan, TaskChange, Verdict};
use crate::replay::{Replay, Step};
use crate::wire::{self, RunRecord};

/// What happened to a run, and to one of its tasks if one was asked for.
#[derive(Debug, Default)]
pub(super) struct RunHistory {
    pub(super) run: Vec<pb::RunTransition>,
    pub(super) task: Vec<pb::TaskTransition>,
    pub(super) attempts: Vec<pb::Attempt>,
}

/// Reads the events and folds them once more.
pub(super) async fn read(
    tx: &mut TenantTx,
    row: &RunRecord,
    plan: Option<&Arc<Plan>>,
    about: Option<TaskRef>,
) -> Result<RunHistory, Error> {
    let events = events(tx, row, 0, i64::MAX).await?;
    tell(&events, row.run_number, plan, about).map_err(|fault| Error::new(Reason::Internal, fault))
}

/// The run's events between two positions of its shard, the first excluded.
pub(super) async fn events(
    tx: &mut TenantTx,
    row: &RunRecord,
    after: i64,
    until: i64,
) -> Result<Vec<Event>, Error> {
    let (shard, first) = place(row.run_number);
    let select = query(include_str!("../store/run_events.sql"))
        .bind(shard)
        .bind(first.max(after.saturating_add(1)))
        .bind(until)
        .bind(row.run_id)
        .bind(row.created_at)
        .bind(row.ended_at);
    tx.all(select).await.map_err(answer::store)
}

/// Shard and position of a run's first event, which are its number.
pub(super) fn place(run_number: i64) -> (i16, i64) {
    let shards = i64::from(Stream::Execution.shards());
    let shard = i16::try_from(run_number.rem_euclid(shards)).unwrap_or(0);
    (shard, run_number.div_euclid(shards))
}

fn tell(
    events: &[Event],
    number: i64,
    plan: Option<&Arc<Plan>>,
    about: Option<TaskRef>,
) -> Result<RunHistory, String> {
    let mut story = RunHistory::default();
    let mut replay = Replay::new(number, plan.cloned());
    for event in events {
        let Some(step) = replay.fold(event)? else {
            continue;
        };
        let run_changes = step.changes.run_history.iter();
        story.run.extend(
            run_changes.map(|(from, to, reason)| run_transition(*from, (*to, *reason), event)),
        );
        if let Some(task_ref) = about {
            let own = step
                .changes
                .history
                .iter()
                .filter(|change| change.task_ref == task_ref);
            story
                .task
                .extend(own.map(|change| task_transition(change, &step.body, event)));
            note_attempt(&mut story.attempts, task_ref, event, &step);
        }
    }
    Ok(story)
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
        time: Some(wire::timestamp(event.recorded_at.unix_us())),
        event_id: wire::ulid(event.event_id),
        detail: String::new(),
    }
}

fn task_transition(change: &TaskChange, body: &Body, event: &Event) -> pb::TaskTransition {
    pb::TaskTransition {
        from_state: i32::from(change.from.code()),
        to_state: i32::from(change.to.code()),
        reason: i32::from(change.reason.code()),
        time: Some(wire::timestamp(event.recorded_at.unix_us())),
        event_id: wire::ulid(event.event_id),
        attempt: change.attempt,
        detail: detail(body),
    }
}

/// What more there is to say: the error's sentence, why user code skipped, the principal.
fn detail(body: &Body) -> String {
    match body {
        Body::TaskFinished(finished) => finished
            .error
            .as_ref()
            .map_or_else(|| finished.skip_reason.clone(), |e| e.message.clone()),
        Body::RunCancelRequested(cancel) => who(cancel.requested_by.as_ref()),
        Body::TaskForceCancelled(force) => who(force.requested_by.as_ref()),
        _ => String::new(),
    }
}

fn who(actor: Option<&pb::Actor>) -> String {
    actor.map_or_else(String::new, |actor| actor.principal.clone())
}

/// Builds the task's attempts from what was said about them.
fn note_attempt(attempts: &mut Vec<pb::Attempt>, task_ref: TaskRef, event: &Event, step: &Step) {
    let Step {
        body,
        verdict,
        changes,
    } = step;
    let at = Some(wire::timestamp(event.recorded_at.unix_us()));
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
                (attempt.end_time, attempt.reason) = (at, reason_of(changes, task_ref));
            }
        }
        Body::TaskForceCancelled(force) if own(force.task) && *verdict == Verdict::Folded => {
            if let Some(attempt) = attempts
                .iter_mut()
                .find(|a| a.attempt_id == force.attempt_id)
            {
                (attempt.end_time, attempt.reason) = (at, reason_of(changes, task_ref));
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
