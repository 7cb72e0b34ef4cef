//! ForceCancelTask: ends a task whose worker no longer answers.

use std::sync::Arc;

use servo_mesh::{Caller, Error, Reason};
use servo_model::{AttemptId, RunId};
use servo_proto::v1;
use servo_proto::v1::event::Body;
use servo_store::{Timestamp, query};
use uuid::Uuid;

use super::{Scheduler, answer, get_run, repeats, tasks};
use crate::core::{Cell, Graph, Slot, Time, force_from};
use crate::shards::{Ask, RunEvent, event_id};
use crate::wire::{self, TaskRow};

const RACES_MAX: usize = 5;

pub(super) async fn force_cancel_task(
    scheduler: &Scheduler,
    caller: &Caller,
    asked: v1::ForceCancelTaskRequest,
) -> Result<v1::ForceCancelTaskResponse, Error> {
    answer::request_id(&asked.request_id)?;
    answer::comment(&asked.comment)?;
    let run_id = answer::run_id(&asked.run_id)?;
    let actor = v1::Actor {
        principal: caller.principal.clone(),
        comment: asked.comment.clone(),
    };
    for _ in 0..RACES_MAX {
        let target = Target::find(scheduler, &asked).await?;
        let scope = (asked.tenant.as_str(), asked.workspace.as_str());
        let told = |body: &Body| target.is_told_by(body, &asked);
        if let Some(accepted_event_id) =
            repeats::first(scheduler, scope, &asked.request_id, told).await?
        {
            let task = tasks::get_task(scheduler, get_task(&asked)).await?.task;
            return Ok(v1::ForceCancelTaskResponse {
                task,
                accepted_event_id,
            });
        }
        if target.cell.reason == servo_model::states::TransitionReason::ForceCancelled {
            return repeated(scheduler, &asked).await;
        }
        let attempt_id = target.active(&asked)?;
        let beat = quiet_since(scheduler, &target, &attempt_id).await?;
        let event = target.event(&asked, run_id, attempt_id, beat, actor.clone());
        let applied = match scheduler.route.submit_one(Ask::Event(event)).await {
            Ok(submitted) => submitted.applied,
            // A repeat of this very call was faster.
            Err(error) if error.reason() == Reason::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        match (applied.acceptance(), applied.refusal()) {
            (v1::Acceptance::Folded, _) => {
                let task = tasks::get_task(scheduler, get_task(&asked)).await?.task;
                return Ok(v1::ForceCancelTaskResponse {
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
    graph: Arc<Graph>,
    slot: Slot,
    cell: Cell,
}

impl Target {
    async fn find(
        scheduler: &Scheduler,
        asked: &v1::ForceCancelTaskRequest,
    ) -> Result<Target, Error> {
        let missing = || answer::task_not_found(&asked.run_id, &asked.task_id);
        let mut tx = scheduler
            .store
            .requests()
            .begin(&asked.tenant)
            .await
            .map_err(answer::store)?;
        let run = get_run::row(&mut tx, &asked.workspace, &asked.run_id).await?;
        let graph = get_run::graph(scheduler, &asked.tenant, &asked.workspace, &run).await?;
        let graph = graph.ok_or_else(missing)?;
        let (slot, row): (Slot, TaskRow) = tasks::find(&mut tx, &run, &graph, &asked.task_id)
            .await?
            .ok_or_else(missing)?;
        tx.commit().await.map_err(answer::store)?;
        let cell = row.task.cell().ok_or_else(missing)?;
        Ok(Target {
            version: u64::try_from(run.version).unwrap_or(0),
            graph,
            slot,
            cell,
        })
    }

    /// Whether an event records this very order.
    fn is_told_by(&self, body: &Body, asked: &v1::ForceCancelTaskRequest) -> bool {
        let Body::TaskForceCancelled(told) = body else {
            return false;
        };
        let comment = told
            .requested_by
            .as_ref()
            .map_or("", |actor| actor.comment.as_str());
        told.run_id == asked.run_id
            && told.task.map(wire::slot) == Some(self.slot)
            && comment == asked.comment
    }

    fn active(&self, asked: &v1::ForceCancelTaskRequest) -> Result<AttemptId, Error> {
        let active = self
            .cell
            .attempt_id
            .filter(|_| self.cell.state.has_attempt());
        active.ok_or_else(|| {
            let state = self.cell.state;
            let message = format!(
                "task {} is {state}; only a task with an active attempt is ended by force",
                asked.task_id
            );
            Error::new(Reason::InvalidState, message).with("state", state.name())
        })
    }

    fn event(
        &self,
        asked: &v1::ForceCancelTaskRequest,
        run_id: RunId,
        attempt_id: AttemptId,
        beat: Option<Time>,
        actor: v1::Actor,
    ) -> Arc<RunEvent> {
        let version = self.version + 1;
        let body = Body::TaskForceCancelled(v1::TaskForceCancelled {
            run_id: asked.run_id.clone(),
            task: Some(wire::task_ref(self.slot)),
            attempt_id: attempt_id.to_string(),
            version,
            requested_by: Some(actor),
            last_heartbeat_time: beat.map(wire::timestamp),
        });
        Arc::new(RunEvent {
            tenant: asked.tenant.clone(),
            run_id,
            event_id: event_id(),
            idempotency_key: repeats::key(&asked.request_id, &run_id, version),
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
        &target.cell,
        target.graph.settings(target.slot.ordinal),
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

fn get_task(asked: &v1::ForceCancelTaskRequest) -> v1::GetTaskRequest {
    v1::GetTaskRequest {
        tenant: asked.tenant.clone(),
        workspace: asked.workspace.clone(),
        run_id: asked.run_id.clone(),
        task_id: asked.task_id.clone(),
        wait_for_event_id: String::new(),
    }
}

/// It had been ended already, by the event that its history names.
async fn repeated(
    scheduler: &Scheduler,
    asked: &v1::ForceCancelTaskRequest,
) -> Result<v1::ForceCancelTaskResponse, Error> {
    let found = tasks::get_task(scheduler, get_task(asked)).await?;
    let accepted_event_id = found
        .history
        .last()
        .map_or_else(String::new, |change| change.event_id.clone());
    Ok(v1::ForceCancelTaskResponse {
        task: found.task,
        accepted_event_id,
    })
}
