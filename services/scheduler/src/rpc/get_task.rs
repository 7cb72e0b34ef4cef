//! GetTask: one task with its attempts and history.

use servo_mesh::Error;
use servo_proto::{proto_time, v1 as pb};
use uuid::Uuid;

use super::Scheduler;
use super::support::{errors, parse, wait};
use crate::reads::{Reads, run_history, runs, tasks};
use crate::store::heartbeats;
use crate::wire;

pub(super) async fn get_task(
    scheduler: &Scheduler,
    request: pb::GetTaskRequest,
) -> Result<pb::GetTaskResponse, Error> {
    let tenant = parse::tenant(&request.tenant)?;
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let reads = &scheduler.reads;
    let missing = || errors::task_not_found(&request.run_id, &request.task_id);
    let mut tx = reads
        .store
        .requests()
        .begin(&tenant)
        .await
        .map_err(errors::store)?;
    let run = runs::find_record(&mut tx, &request.workspace, &request.run_id).await?;
    let plan = runs::find_plan(reads, &tenant, &request.workspace, &run)
        .await?
        .ok_or_else(missing)?;
    let mapped = tasks::count_mapped(&mut tx, &run, &plan).await?;
    let (task_ref, record) = tasks::find(&mut tx, &run, &plan, &request.task_id)
        .await?
        .ok_or_else(missing)?;
    let history = run_history::read(&mut tx, &run, Some(&plan), Some(task_ref)).await?;
    tx.commit().await.map_err(errors::store)?;
    let mut task = wire::task_to_proto(&request.run_id, &record, &plan, &mapped);
    if let (Some(task), Some(attempt)) = (&mut task, record.task.attempt_id) {
        add_heartbeat(reads, task, attempt).await?;
    }
    Ok(pb::GetTaskResponse {
        task,
        attempts: history.attempts,
        history: history.task,
    })
}

/// Adds the last heartbeat of the attempt and the progress it reported.
async fn add_heartbeat(reads: &Reads, task: &mut pb::Task, attempt: Uuid) -> Result<(), Error> {
    let beat = heartbeats::last_with_progress(reads.store.loops(), attempt)
        .await
        .map_err(errors::store)?;
    if let Some((beat_at, ppm, message)) = beat {
        task.heartbeat_time = Some(proto_time(beat_at));
        task.progress_ppm = ppm.map(i32::unsigned_abs);
        task.progress_message = message.unwrap_or_default();
    }
    Ok(())
}
