//! ForceCancelTask: ends a task whose worker no longer answers.

use std::sync::Arc;

use servo_mesh::{Caller, Error, Reason};
use servo_model::{AttemptId, RunId, TaskRef};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{Timestamp, query};
use uuid::Uuid;

use super::{Scheduler, answer, get_run, repeats, tasks};
use crate::core::{Plan, TaskRow, Time, force_from};
use crate::shards::{Command, RunEvent, event_id};
use crate::wire::{self, TaskRecord};

const RACES_MAX: usize = 5;

pub(super) async fn force_cancel_task(
    scheduler: &Scheduler,
    caller: &Caller,
    request: pb::ForceCancelTaskRequest,
) -> Result<pb::ForceCancelTaskResponse, Error> {
    answer::request_id(&request.request_id)?;
    answer::comment(&request.comment)?;
    let run_id = answer::run_id(&request.run_id)?;
    let actor = pb::Actor {
        principal: caller.principal.clone(),
        comment: request.comment.clone(),
    };
    for _ in 0..RACES_MAX {
        let target = Target::find(scheduler, &request).await?;
        let scope = (request.tenant.as_str(), request.workspace.as_str());
        let message = |body: &Body| target.is_recorded_by(body, &request);
        if let Some(accepted_event_id) =
            repeats::first(scheduler, scope, &request.request_id, message).await?
        {
            let task = tasks::get_task(scheduler, get_task(&request)).await?.task;
            return Ok(pb::ForceCancelTaskResponse {
                task,
                accepted_event_id,
            });
        }
        if target.task_row.reason == servo_model::states::TransitionReason::ForceCancelled {
            return repeated(scheduler, &request).await;
        }
        let attempt_id = target.active(&request)?;
        let beat = quiet_since(scheduler, &target, &attempt_id).await?;
        let event = target.event(&request, run_id, attempt_id, beat, actor.clone());
        let applied = match scheduler.route.submit_one(Command::Event(event)).await {
            Ok(submitted) => submitted.applied,
            // A repeat of this very call was faster.
            Err(error) if error.reason() == Reason::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        match (applied.acceptance(), applied.refusal()) {
            (pb::Acceptance::Folded, _) => {
                let task = tasks::get_task(scheduler, get_task(&request)).await?.task;
                return Ok(pb::ForceCancelTaskResponse {
                    task,
                    accepted_event_id: applied.event_id,
                });
            }
            // Something happened meanwhile: look again.
            (_, Reason::VersionConflict | Reason::StaleAttempt | Reason::InvalidState) => {}
            (_, reason) => return Err(Error::new(reason, applied.message)),
        }
    }
    Err(Error::new(
        Reason::VersionConflict,
        "others keep changing this run; read it and try again",
    ))
}

/// The task as it stands.
struct Target {
    version: u64,
    plan: Arc<Plan>,
    task_ref: TaskRef,
    task_row: TaskRow,
}

impl Target {
    async fn find(
        scheduler: &Scheduler,
        request: &pb::ForceCancelTaskRequest,
    ) -> Result<Target, Error> {
        let missing = || answer::task_not_found(&request.run_id, &request.task_id);
        let mut tx = scheduler
            .store
            .requests()
            .begin(&request.tenant)
            .await
            .map_err(answer::store)?;
        let run = get_run::row(&mut tx, &request.workspace, &request.run_id).await?;
        let plan = get_run::plan(scheduler, &request.tenant, &request.workspace, &run).await?;
        let plan = plan.ok_or_else(missing)?;
        let (task_ref, row): (TaskRef, TaskRecord) =
            tasks::find(&mut tx, &run, &plan, &request.task_id)
                .await?
                .ok_or_else(missing)?;
        tx.commit().await.map_err(answer::store)?;
        let task_row = row.task.task_row().ok_or_else(missing)?;
        Ok(Target {
            version: u64::try_from(run.version).unwrap_or(0),
            plan,
            task_ref,
            task_row,
        })
    }

    /// Whether an event records this very order.
    fn is_recorded_by(&self, body: &Body, request: &pb::ForceCancelTaskRequest) -> bool {
        let Body::TaskForceCancelled(message) = body else {
            return false;
        };
        let comment = message
            .requested_by
            .as_ref()
            .map_or("", |actor| actor.comment.as_str());
        message.run_id == request.run_id
            && message.task.map(wire::task_ref_from_proto) == Some(self.task_ref)
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
                "task {} is {state}; only a task with an active attempt is ended by force",
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
        beat: Option<Time>,
        actor: pb::Actor,
    ) -> Arc<RunEvent> {
        let version = self.version + 1;
        let body = Body::TaskForceCancelled(pb::TaskForceCancelled {
            run_id: request.run_id.clone(),
            task: Some(wire::task_ref_to_proto(self.task_ref)),
            attempt_id: attempt_id.to_string(),
            version,
            requested_by: Some(actor),
            last_heartbeat_time: beat.map(wire::timestamp),
        });
        Arc::new(RunEvent {
            tenant: request.tenant.clone(),
            run_id,
            event_id: event_id(),
            idempotency_key: repeats::key(&request.request_id, &run_id, version),
            body,
            trace: None,
        })
    }
}

/// The last beat, if there was one; refused while the attempt still beats.
async fn quiet_since(
    scheduler: &Scheduler,
    target: &Target,
    attempt_id: &AttemptId,
) -> Result<Option<Time>, Error> {
    let select = query(include_str!("../store/sign_of_life.sql"))
        .bind(Uuid::from_bytes(*attempt_id.as_bytes()));
    let rows: Vec<(Option<Timestamp>, Timestamp)> = scheduler
        .store
        .loops()
        .all(select)
        .await
        .map_err(answer::store)?;
    let unknown = || {
        Error::new(
            Reason::NotReady,
            "the store did not say when the attempt beat last",
        )
    };
    let (beat, now) = rows.into_iter().next().ok_or_else(unknown)?;
    let beat = beat.map(Timestamp::unix_us);
    let until = force_from(
        &target.task_row,
        target.plan.settings(target.task_ref.ordinal),
        beat,
    );
    if until <= now.unix_us() {
        return Ok(beat);
    }
    let seconds = (until - now.unix_us()).div_euclid(1_000_000) + 1;
    let message = format!(
        "the task's worker gave a sign of life not long ago; cancel the run the usual way, or try again in {seconds} s"
    );
    let wait = std::time::Duration::from_secs(seconds.unsigned_abs());
    Err(Error::new(Reason::HeartbeatRecent, message).retry_after(wait))
}

fn get_task(request: &pb::ForceCancelTaskRequest) -> pb::GetTaskRequest {
    pb::GetTaskRequest {
        tenant: request.tenant.clone(),
        workspace: request.workspace.clone(),
        run_id: request.run_id.clone(),
        task_id: request.task_id.clone(),
        wait_for_event_id: String::new(),
    }
}

/// It had been ended already, by the event that its history names.
async fn repeated(
    scheduler: &Scheduler,
    request: &pb::ForceCancelTaskRequest,
) -> Result<pb::ForceCancelTaskResponse, Error> {
    let found = tasks::get_task(scheduler, get_task(request)).await?;
    let accepted_event_id = found
        .history
        .last()
        .map_or_else(String::new, |change| change.event_id.clone());
    Ok(pb::ForceCancelTaskResponse {
        task: found.task,
        accepted_event_id,
    })
}
