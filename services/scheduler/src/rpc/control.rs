//! CancelRun, PauseRun and ResumeRun.

use std::sync::Arc;

use servo_mesh::{Caller, Error, Reason};
use servo_model::RunId;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;

use super::{Scheduler, answer, get_run, repeats};
use crate::shards::{Command, RunEvent, event_id};

/// How often a change is tried again that another one overtook.
const RACES_MAX: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunAction {
    Cancel,
    Pause,
    Resume,
}

/// What is to be done with which run.
pub(super) struct Order {
    action: RunAction,
    run_id: String,
    /// 0 takes any.
    expected_version: u64,
    comment: String,
    request_id: String,
}

impl Order {
    pub(super) fn new(
        action: RunAction,
        request_id: &str,
        run_id: &str,
        expected_version: u64,
        comment: &str,
    ) -> Result<Order, Error> {
        answer::request_id(request_id)?;
        answer::comment(comment)?;
        let (run_id, comment, request_id) =
            (run_id.to_owned(), comment.to_owned(), request_id.to_owned());
        Ok(Order {
            action,
            run_id,
            expected_version,
            comment,
            request_id,
        })
    }

    /// Whether an event records this very order.
    fn is_recorded_by(&self, body: &Body) -> bool {
        let (action, run_id, version, by) = match body {
            Body::RunCancelRequested(message) => (
                RunAction::Cancel,
                &message.run_id,
                message.version,
                &message.requested_by,
            ),
            Body::RunPaused(message) => (
                RunAction::Pause,
                &message.run_id,
                message.version,
                &message.requested_by,
            ),
            Body::RunResumed(message) => (
                RunAction::Resume,
                &message.run_id,
                message.version,
                &message.requested_by,
            ),
            _ => return false,
        };
        let comment = by.as_ref().map_or("", |actor| actor.comment.as_str());
        action == self.action
            && *run_id == self.run_id
            && comment == self.comment
            && (self.expected_version == 0 || version == self.expected_version + 1)
    }
}

/// The run after it, and the event that records it.
pub(super) async fn control(
    scheduler: &Scheduler,
    caller: &Caller,
    tenant: &str,
    workspace: &str,
    order: Order,
) -> Result<(pb::Run, String), Error> {
    let run_id = answer::run_id(&order.run_id)?;
    let actor = pb::Actor {
        principal: caller.principal.clone(),
        comment: order.comment.clone(),
    };
    for _ in 0..RACES_MAX {
        let run = get_run::find(scheduler, tenant, workspace, &order.run_id).await?;
        let message = |body: &Body| order.is_recorded_by(body);
        if let Some(event_id) =
            repeats::first(scheduler, (tenant, workspace), &order.request_id, message).await?
        {
            return Ok((run, event_id));
        }
        if !run.set_aside_reason.is_empty() {
            let message = format!(
                "run {} is set aside: {}",
                order.run_id, run.set_aside_reason
            );
            return Err(Error::new(Reason::InvalidState, message));
        }
        if order.expected_version != 0 && order.expected_version != run.version {
            return Err(stale(&order, run.version));
        }
        let event = event(&order, run_id, tenant, run.version + 1, actor.clone());
        let applied = match scheduler.route.submit_one(Command::Event(event)).await {
            Ok(submitted) => submitted.applied,
            // A repeat of this very call was faster.
            Err(error) if error.reason() == Reason::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        match (applied.acceptance(), applied.refusal()) {
            (pb::Acceptance::Folded, _) => {
                let run = get_run::find(scheduler, tenant, workspace, &order.run_id).await?;
                return Ok((run, applied.event_id));
            }
            (pb::Acceptance::Duplicate, _) => {
                return repeated(scheduler, tenant, workspace, &order).await;
            }
            (_, Reason::VersionConflict) => {}
            (_, Reason::InvalidState) => {
                let run = get_run::find(scheduler, tenant, workspace, &order.run_id).await?;
                return Err(unfit(&order, run.state()));
            }
            (_, Reason::RunNotFound) => return Err(answer::run_not_found(&order.run_id)),
            (_, reason) => return Err(Error::new(reason, applied.message)),
        }
    }
    Err(Error::new(
        Reason::VersionConflict,
        "others keep changing this run; read it and try again",
    ))
}

/// The run as it stands, and the event that made it so: of a change that had happened already.
async fn repeated(
    scheduler: &Scheduler,
    tenant: &str,
    workspace: &str,
    order: &Order,
) -> Result<(pb::Run, String), Error> {
    let request = pb::GetRunRequest {
        tenant: tenant.to_owned(),
        workspace: workspace.to_owned(),
        run_id: order.run_id.clone(),
        include_history: true,
        ..Default::default()
    };
    let found = get_run::get_run(scheduler, request).await?;
    let state = match order.action {
        RunAction::Cancel => pb::RunState::Cancelling,
        RunAction::Pause => pb::RunState::Paused,
        RunAction::Resume => pb::RunState::Running,
    };
    let change = found
        .history
        .iter()
        .rev()
        .find(|change| change.to_state() == state);
    let event_id = change.map_or_else(String::new, |change| change.event_id.clone());
    Ok((found.run.unwrap_or_default(), event_id))
}

fn event(
    order: &Order,
    run_id: RunId,
    tenant: &str,
    version: u64,
    actor: pb::Actor,
) -> Arc<RunEvent> {
    let (run, requested_by) = (run_id.to_string(), Some(actor));
    let body = match order.action {
        RunAction::Cancel => Body::RunCancelRequested(pb::RunCancelRequested {
            run_id: run,
            version,
            requested_by,
            by_system: false,
        }),
        RunAction::Pause => Body::RunPaused(pb::RunPaused {
            run_id: run,
            version,
            requested_by,
        }),
        RunAction::Resume => Body::RunResumed(pb::RunResumed {
            run_id: run,
            version,
            requested_by,
        }),
    };
    Arc::new(RunEvent {
        tenant: tenant.to_owned(),
        run_id,
        event_id: event_id(),
        idempotency_key: repeats::key(&order.request_id, &run_id, version),
        body,
        trace: None,
    })
}

fn stale(order: &Order, version: u64) -> Error {
    let message = format!(
        "expected_version is {}, but run {} is at version {version}; read it and decide again",
        order.expected_version, order.run_id
    );
    Error::new(Reason::VersionConflict, message).with("version", version.to_string())
}

fn unfit(order: &Order, state: pb::RunState) -> Error {
    let state = state.as_str_name().trim_start_matches("RUN_STATE_");
    let action = match order.action {
        RunAction::Cancel => "cancelled",
        RunAction::Pause => "paused",
        RunAction::Resume => "resumed",
    };
    Error::new(
        Reason::InvalidState,
        format!("run {} is {state} and cannot be {action}", order.run_id),
    )
    .with("state", state)
}
