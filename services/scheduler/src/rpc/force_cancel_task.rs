//! ForceCancelTask: ends a task whose worker no longer answers.

use std::sync::Arc;

use servo_mesh::{Caller, Error, Reason};
use servo_model::{AttemptId, RunId, TaskRef, TenantId, Timestamp};
use servo_proto::v1::event::Body;
use servo_proto::{proto_time, v1 as pb};

use super::support::{errors, parse, request_ids};
use super::{Scheduler, get_task};
use crate::core::{Plan, TaskRow, force_from};
use crate::forward::ForwardableCommand;
use crate::reads::{runs, tasks};
use crate::shards::{RunEvent, event_id};
use crate::store::heartbeats;
use crate::store::tasks::TaskRecord;
use crate::wire;

const RACES_MAX: usize = 5;

pub(super) async fn force_cancel_task(
    scheduler: &Scheduler,
    caller: &Caller,
    request: pb::ForceCancelTaskRequest,
) -> Result<pb::ForceCancelTaskResponse, Error> {
    let tenant = parse::tenant(&request.tenant)?;
    parse::request_id(&request.request_id)?;
    parse::comment(&request.comment)?;
    let run_id = parse::run_id(&request.run_id)?;
    let actor = pb::Actor {
        principal: caller.principal.clone(),
        comment: request.comment.clone(),
    };
    for _ in 0..RACES_MAX {
        let target = Target::find(scheduler, &tenant, &request).await?;
        let scope = (&tenant, request.workspace.as_str());
        let is_same = |body: &Body| target.is_recorded_by(body, &request);
        if let Some(accepted_event_id) =
            request_ids::find_first(scheduler, scope, &request.request_id, is_same).await?
        {
            let task = get_task::get_task(scheduler, get_task_request(&request))
                .await?
                .task;
            return Ok(pb::ForceCancelTaskResponse {
                task,
                accepted_event_id,
            });
        }
        if target.task_row.reason == servo_model::states::TransitionReason::ForceCancelled {
            return repeated(scheduler, &request).await;
        }
        let attempt_id = target.active(&request)?;
        let beat = check_silent(scheduler, &target, &attempt_id).await?;
        let event = target.event(&request, run_id, attempt_id, beat, actor.clone());
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
                let task = get_task::get_task(scheduler, get_task_request(&request))
                    .await?
                    .task;
                return Ok(pb::ForceCancelTaskResponse {
                    task,
                    accepted_event_id: applied.event_id,
                });
            }
            // The run changed concurrently: read it again.
            (_, Reason::VersionConflict | Reason::StaleAttempt | Reason::InvalidState) => {}
            (_, reason) => return Err(Error::new(reason, applied.message)),
        }
    }
    Err(Error::new(
        Reason::VersionConflict,
        "the run keeps changing concurrently; read it and try again",
    ))
}

/// The task and its run.
struct Target {
    tenant: TenantId,
    version: u64,
    plan: Arc<Plan>,
    task_ref: TaskRef,
    task_row: TaskRow,
}

impl Target {
    async fn find(
        scheduler: &Scheduler,
        tenant: &TenantId,
        request: &pb::ForceCancelTaskRequest,
    ) -> Result<Target, Error> {
        let missing = || errors::task_not_found(&request.run_id, &request.task_id);
        let mut tx = scheduler
            .reads
            .store
            .requests()
            .begin(tenant)
            .await
            .map_err(errors::store)?;
        let run = runs::find_record(&mut tx, &request.workspace, &request.run_id).await?;
        let plan = runs::find_plan(&scheduler.reads, tenant, &request.workspace, &run).await?;
        let plan = plan.ok_or_else(missing)?;
        let (task_ref, row): (TaskRef, TaskRecord) =
            tasks::find(&mut tx, &run, &plan, &request.task_id)
                .await?
                .ok_or_else(missing)?;
        tx.commit().await.map_err(errors::store)?;
        let task_row = row.task.task_row().ok_or_else(missing)?;
        Ok(Target {
            tenant: tenant.clone(),
            version: u64::try_from(run.version).unwrap_or(0),
            plan,
            task_ref,
            task_row,
        })
    }

    /// Whether an event records this request.
    fn is_recorded_by(&self, body: &Body, request: &pb::ForceCancelTaskRequest) -> bool {
        let Body::TaskForceCancelled(event) = body else {
            return false;
        };
        let comment = event
            .requested_by
            .as_ref()
            .map_or("", |actor| actor.comment.as_str());
        event.run_id == request.run_id
            && event.task.map(wire::task_ref_from_proto) == Some(self.task_ref)
            && comment == request.comment
    }

    fn active(&self, request: &pb::ForceCancelTaskRequest) -> Result<AttemptId, Error> {
        let active = self
            .task_row
            .attempt_id
            .filter(|_| self.task_row.state.has_attempt());
        active.ok_or_else(|| {
            let state = self.task_row.state;
            let message = format!(
                "task {} is {state}; only a task with an active attempt can be ended by force",
                request.task_id
            );
            Error::new(Reason::InvalidState, message).with("state", state.name())
        })
    }

    fn event(
        &self,
        request: &pb::ForceCancelTaskRequest,
        run_id: RunId,
        attempt_id: AttemptId,
        beat: Option<Timestamp>,
        actor: pb::Actor,
    ) -> Arc<RunEvent> {
        let version = self.version + 1;
        let body = Body::TaskForceCancelled(pb::TaskForceCancelled {
            run_id: request.run_id.clone(),
            task: Some(wire::task_ref_to_proto(self.task_ref)),
            attempt_id: attempt_id.to_string(),
            version,
            requested_by: Some(actor),
            last_heartbeat_time: beat.map(proto_time),
        });
        Arc::new(RunEvent {
            tenant: self.tenant.clone(),
            run_id,
            event_id: event_id(),
            idempotency_key: request_ids::event_key(&request.request_id, &run_id, version),
            body,
            trace: None,
        })
    }
}

/// Returns the last heartbeat. Fails while the attempt still sends heartbeats.
async fn check_silent(
    scheduler: &Scheduler,
    target: &Target,
    attempt_id: &AttemptId,
) -> Result<Option<Timestamp>, Error> {
    let unknown = || {
        Error::new(
            Reason::NotReady,
            "the store did not return the attempt's last heartbeat",
        )
    };
    let (beat, now) = heartbeats::last_and_now(scheduler.reads.store.loops(), *attempt_id)
        .await
        .map_err(errors::store)?
        .ok_or_else(unknown)?;
    let until = force_from(
        &target.task_row,
        target.plan.settings(target.task_ref.ordinal),
        beat,
    );
    if until <= now {
        return Ok(beat);
    }
    let seconds = until.since(now).as_secs() + 1;
    let message = format!(
        "the task's worker sent a heartbeat recently; cancel the run instead, or try again in {seconds} s"
    );
    let wait = std::time::Duration::from_secs(seconds);
    Err(Error::new(Reason::HeartbeatRecent, message).retry_after(wait))
}

fn get_task_request(request: &pb::ForceCancelTaskRequest) -> pb::GetTaskRequest {
    pb::GetTaskRequest {
        tenant: request.tenant.clone(),
        workspace: request.workspace.clone(),
        run_id: request.run_id.clone(),
        task_id: request.task_id.clone(),
        wait_for_event_id: String::new(),
    }
}

/// The answer for a task that was force cancelled before.
async fn repeated(
    scheduler: &Scheduler,
    request: &pb::ForceCancelTaskRequest,
) -> Result<pb::ForceCancelTaskResponse, Error> {
    let found = get_task::get_task(scheduler, get_task_request(request)).await?;
    let accepted_event_id = found
        .history
        .last()
        .map_or_else(String::new, |change| change.event_id.clone());
    Ok(pb::ForceCancelTaskResponse {
        task: found.task,
        accepted_event_id,
    })
}
