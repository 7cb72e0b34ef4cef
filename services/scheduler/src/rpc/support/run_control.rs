//! The common part of CancelRun, PauseRun and ResumeRun.

use std::sync::Arc;

use servo_mesh::{Caller, Error, Reason};
use servo_model::{RunId, TenantId};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;

use super::{errors, parse, request_ids};
use crate::forward::ForwardableCommand;
use crate::reads::runs;
use crate::rpc::{Scheduler, get_run};
use crate::shards::{RunEvent, event_id};

/// How often a change is retried after a concurrent one.
const RACES_MAX: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunAction {
    Cancel,
    Pause,
    Resume,
}

/// An action on a run, as a caller requests it.
pub(crate) struct ControlRequest {
    action: RunAction,
    run_id: String,
    /// 0 matches any version.
    expected_version: u64,
    comment: String,
    request_id: String,
}

impl ControlRequest {
    pub(crate) fn new(
        action: RunAction,
        request_id: &str,
        run_id: &str,
        expected_version: u64,
        comment: &str,
    ) -> Result<ControlRequest, Error> {
        parse::request_id(request_id)?;
        parse::comment(comment)?;
        let (run_id, comment, request_id) =
            (run_id.to_owned(), comment.to_owned(), request_id.to_owned());
        Ok(ControlRequest {
            action,
            run_id,
            expected_version,
            comment,
            request_id,
        })
    }

    /// Whether an event records this request.
    fn is_recorded_by(&self, body: &Body) -> bool {
        let (action, run_id, version, by) = match body {
            Body::RunCancelRequested(event) => (
                RunAction::Cancel,
                &event.run_id,
                event.version,
                &event.requested_by,
            ),
            Body::RunPaused(event) => (
                RunAction::Pause,
                &event.run_id,
                event.version,
                &event.requested_by,
            ),
            Body::RunResumed(event) => (
                RunAction::Resume,
                &event.run_id,
                event.version,
                &event.requested_by,
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

/// Applies the action and returns the run afterwards and the event that records it.
pub(crate) async fn control(
    scheduler: &Scheduler,
    caller: &Caller,
    (tenant, workspace): (&TenantId, &str),
    request: ControlRequest,
) -> Result<(pb::Run, String), Error> {
    let run_id = parse::run_id(&request.run_id)?;
    let actor = pb::Actor {
        principal: caller.principal.clone(),
        comment: request.comment.clone(),
    };
    for _ in 0..RACES_MAX {
        let run = runs::find(&scheduler.reads, tenant, workspace, &request.run_id).await?;
        let is_same = |body: &Body| request.is_recorded_by(body);
        if let Some(event_id) =
            request_ids::find_first(scheduler, (tenant, workspace), &request.request_id, is_same)
                .await?
        {
            return Ok((run, event_id));
        }
        if !run.set_aside_reason.is_empty() {
            let message = format!(
                "run {} is set aside: {}",
                request.run_id, run.set_aside_reason
            );
            return Err(Error::new(Reason::InvalidState, message));
        }
        if request.expected_version != 0 && request.expected_version != run.version {
            return Err(stale(&request, run.version));
        }
        let event = event(&request, run_id, tenant, run.version + 1, actor.clone());
        let applied = match scheduler
            .router
            .submit_one(ForwardableCommand::Event(event))
            .await
        {
            Ok(submitted) => submitted.applied,
            // A concurrent repeat of this call was faster.
            Err(error) if error.reason() == Reason::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        match (applied.acceptance(), applied.refusal()) {
            (pb::Acceptance::Folded, _) => {
                let run = runs::find(&scheduler.reads, tenant, workspace, &request.run_id).await?;
                return Ok((run, applied.event_id));
            }
            (pb::Acceptance::Duplicate, _) => {
                return repeated(scheduler, tenant, workspace, &request).await;
            }
            (_, Reason::VersionConflict) => {}
            (_, Reason::InvalidState) => {
                let run = runs::find(&scheduler.reads, tenant, workspace, &request.run_id).await?;
                return Err(unfit(&request, run.state()));
            }
            (_, Reason::RunNotFound) => return Err(errors::run_not_found(&request.run_id)),
            (_, reason) => return Err(Error::new(reason, applied.message)),
        }
    }
    Err(Error::new(
        Reason::VersionConflict,
        "the run keeps changing concurrently; read it and try again",
    ))
}

/// The answer to an action that had been applied before: the run and the event that applied it.
async fn repeated(
    scheduler: &Scheduler,
    tenant: &TenantId,
    workspace: &str,
    request: &ControlRequest,
) -> Result<(pb::Run, String), Error> {
    let get = pb::GetRunRequest {
        tenant: tenant.to_string(),
        workspace: workspace.to_owned(),
        run_id: request.run_id.clone(),
        include_history: true,
        ..Default::default()
    };
    let found = get_run::get_run(scheduler, get).await?;
    let state = match request.action {
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
    request: &ControlRequest,
    run_id: RunId,
    tenant: &TenantId,
    version: u64,
    actor: pb::Actor,
) -> Arc<RunEvent> {
    let (run, requested_by) = (run_id.to_string(), Some(actor));
    let body = match request.action {
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
        tenant: tenant.clone(),
        run_id,
        event_id: event_id(),
        idempotency_key: request_ids::event_key(&request.request_id, &run_id, version),
        body,
        trace: None,
    })
}

fn stale(request: &ControlRequest, version: u64) -> Error {
    let message = format!(
        "expected_version is {}, but run {} is at version {version}; read it and decide again",
        request.expected_version, request.run_id
    );
    Error::new(Reason::VersionConflict, message).with("version", version.to_string())
}

fn unfit(request: &ControlRequest, state: pb::RunState) -> Error {
    let state = state.as_str_name().trim_start_matches("RUN_STATE_");
    let action = match request.action {
        RunAction::Cancel => "cancelled",
        RunAction::Pause => "paused",
        RunAction::Resume => "resumed",
    };
    Error::new(
        Reason::InvalidState,
        format!("run {} is {state} and cannot be {action}", request.run_id),
    )
    .with("state", state)
}
