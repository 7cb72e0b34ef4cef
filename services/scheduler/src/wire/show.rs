//! Runs and tasks as the API shows them.

use prost::Message;
use servo_model::states::TaskState;
use servo_model::{AttemptId, RunId, TaskKey, TaskRef, Timestamp, WorkerId};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1::event::Body;
use servo_proto::{proto_time, v1 as pb};
use ulid::Ulid;
use uuid::Uuid;

use super::event::body_of;
use super::task_ref::task_ref_to_proto;
use crate::core::{Plan, RunView, TaskRow};
use crate::store::runs::RunRecord;
use crate::store::tasks::TaskRecord;

/// `counts` are the tasks by state of a run whose row does not store them.
pub(crate) fn run_to_proto(row: &RunRecord, counts: &[(i16, i64)]) -> pb::Run {
    let requested = match body_of(&row.request) {
        Ok((Body::RunRequested(requested), _)) => requested,
        _ => pb::RunRequested::default(),
    };
    let own: Vec<(i16, i64)> = match &row.counts {
        Some(counts) => TaskState::ALL
            .iter()
            .zip(counts)
            .map(|(s, n)| (s.code(), i64::from(*n)))
            .collect(),
        None => counts.to_vec(),
    };
    pb::Run {
        run_id: RunId::from_bytes(row.run_id.into_bytes()).to_string(),
        run_key: requested.run_key,
        generation: requested.generation,
        retry_of: requested.retry_of,
        state: i32::from(row.state),
        reason: i32::from(row.reason),
        spec: requested.spec,
        trigger: requested.trigger,
        requested_by: requested.requested_by,
        request_fingerprint: requested.request_fingerprint,
        plan_id: row.plan_id.as_deref().map_or_else(String::new, hex),
        plan_fingerprint: row.plan_fingerprint.clone().unwrap_or_default(),
        deployment_id: row.deployment_id.clone().unwrap_or_default(),
        tasks: Some(task_counts(&own)),
        flagged: row.flagged,
        error: row.error.clone().unwrap_or_default(),
        set_aside_reason: row.set_aside.clone().unwrap_or_default(),
        version: u64::try_from(row.version).unwrap_or(0),
        create_time: Some(proto_time(row.created_at)),
        start_time: row.started_at.map(proto_time),
        end_time: row.ended_at.map(proto_time),
        deadline: row.deadline.map(proto_time),
    }
}

/// The state of a run for the instance that forwarded the command, which has its request already.
pub(crate) fn run_standing(view: &RunView) -> mesh_pb::RunStanding {
    let counts: Vec<(i16, i64)> = TaskState::ALL
        .iter()
        .map(|state| (state.code(), i64::from(view.counts.of(*state))))
        .collect();
    mesh_pb::RunStanding {
        state: i32::from(view.state.code()),
        reason: i32::from(view.reason.code()),
        version: view.version,
        tasks: Some(task_counts(&counts)),
        error: view.error.clone().unwrap_or_default(),
        create_time: Some(proto_time(view.created_at)),
        start_time: view.started_at.map(proto_time),
        end_time: view.ended_at.map(proto_time),
        deadline: view.deadline.map(proto_time),
    }
}

/// A run that was just folded, from its request and its state.
pub(crate) fn run_from_standing(
    requested: &pb::RunRequested,
    plan: Option<&Plan>,
    plan_fingerprint: &str,
    standing: mesh_pb::RunStanding,
) -> pb::Run {
    pb::Run {
        run_id: requested.run_id.clone(),
        run_key: requested.run_key.clone(),
        generation: requested.generation,
        retry_of: requested.retry_of.clone(),
        state: standing.state,
        reason: standing.reason,
        spec: requested.spec.clone(),
        trigger: requested.trigger.clone(),
        requested_by: requested.requested_by.clone(),
        request_fingerprint: requested.request_fingerprint.clone(),
        plan_id: plan.map_or_else(String::new, |plan| hex(&plan.plan_id)),
        plan_fingerprint: plan_fingerprint.to_owned(),
        deployment_id: plan.map_or_else(String::new, |plan| plan.deployment_id.to_string()),
        tasks: standing.tasks,
        flagged: false,
        error: standing.error,
        set_aside_reason: String::new(),
        version: standing.version,
        create_time: standing.create_time,
        start_time: standing.start_time,
        end_time: standing.end_time,
        deadline: standing.deadline,
    }
}

/// The fields of a task that are not in its task row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TaskExtras<'a> {
    /// Its last error, encoded.
    pub error: Option<&'a [u8]>,
    pub beat_at: Option<Timestamp>,
    /// The number of its mapped tasks, if it is a mapped parent with items.
    pub mapped_count: Option<u32>,
}

/// `None` when the row has a state that this version does not know.
pub(crate) fn task_to_proto(
    run_id: &str,
    row: &TaskRecord,
    plan: &Plan,
    mapped: &[(i32, i64)],
) -> Option<pb::Task> {
    let task_ref = row.task.task_ref();
    let count = mapped
        .iter()
        .find(|(ordinal, _)| ordinal.unsigned_abs() == task_ref.ordinal);
    let extras = TaskExtras {
        error: row.error.as_deref(),
        beat_at: row.beat_at,
        mapped_count: count.map(|(_, count)| u32::try_from(*count).unwrap_or(u32::MAX)),
    };
    task_from_row(run_id, plan, task_ref, &row.task.task_row()?, extras)
}

pub(crate) fn task_from_row(
    run_id: &str,
    plan: &Plan,
    task_ref: TaskRef,
    task_row: &TaskRow,
    extras: TaskExtras<'_>,
) -> Option<pb::Task> {
    let planned = plan.tasks.get(task_ref.ordinal as usize)?;
    let settings = plan.settings(task_ref.ordinal);
    let upstream = planned
        .upstream
        .iter()
        .map(|up| plan.task(*up).key.id().to_string());
    let is_parent = planned.mapped_over.is_some() && task_ref.map_index.is_none();
    let key = plan.task_key(task_ref);
    Some(pb::Task {
        task_id: key.id().to_string(),
        task_key: key.to_string(),
        run_id: run_id.to_owned(),
        r#ref: Some(task_ref_to_proto(task_ref)),
        asset_key: settings.asset_key.to_string(),
        partition_key: planned.partition_key.to_string(),
        operation: i32::from(operation(&planned.key)),
        state: i32::from(task_row.state.code()),
        reason: i32::from(task_row.reason.code()),
        attempt: task_row.attempt,
        failures: task_row.failures,
        attempt_id: text(task_row.attempt_id),
        worker_id: task_row
            .worker
            .map_or_else(String::new, |id| WorkerId::from_bytes(id).to_string()),
        cancelling: task_row.cancelling,
        upstream_task_ids: upstream.collect(),
        error: extras
            .error
            .and_then(|error| pb::TaskError::decode(error).ok()),
        materialization_id: materialization_id(task_row),
        mapped_count: extras.mapped_count.filter(|_| is_parent),
        ready_time: task_row.first_ready_at.map(proto_time),
        start_time: task_row.started_at.map(proto_time),
        end_time: task_row.ended_at.map(proto_time),
        retry_time: task_row
            .due_at
            .filter(|_| task_row.state == TaskState::RetryWait)
            .map(proto_time),
        heartbeat_time: extras.beat_at.map(proto_time),
        pool: settings.pool.to_string(),
        priority: settings.priority,
        // Only GetTask reads the progress.
        progress_ppm: None,
        progress_message: String::new(),
    })
}

fn materialization_id(task_row: &TaskRow) -> String {
    if task_row.state == TaskState::Succeeded {
        text(task_row.attempt_id)
    } else {
        String::new()
    }
}

fn operation(key: &TaskKey) -> i16 {
    match key.operation() {
        servo_model::Operation::Materialize => 1,
        servo_model::Operation::Check => 2,
        servo_model::Operation::Evaluate => 3,
    }
}

fn task_counts(counts: &[(i16, i64)]) -> pb::TaskCounts {
    let of = |states: &[TaskState]| {
        let own = counts
            .iter()
            .filter(|(code, _)| states.iter().any(|state| state.code() == *code));
        u32::try_from(own.map(|(_, count)| *count).sum::<i64>()).unwrap_or(u32::MAX)
    };
    pb::TaskCounts {
        total: of(TaskState::ALL),
        blocked: of(&[TaskState::Planned, TaskState::Blocked]),
        ready: of(&[TaskState::Ready]),
        active: of(&[TaskState::Queued, TaskState::Dispatched, TaskState::Running]),
        retry_wait: of(&[TaskState::RetryWait]),
        succeeded: of(&[TaskState::Succeeded]),
        failed: of(&[TaskState::Failed]),
        skipped: of(&[TaskState::Skipped]),
        cancelled: of(&[TaskState::Cancelled]),
    }
}

pub(crate) fn ulid(id: Uuid) -> String {
    Ulid::from(id.as_u128()).to_string()
}

fn text(attempt: Option<AttemptId>) -> String {
    attempt.map_or_else(String::new, |id| id.to_string())
}

fn hex(bytes: &[u8]) -> String {
    <[u8; 32]>::try_from(bytes).map_or_else(
        |_| String::new(),
        |bytes| servo_model::Digest::from_bytes(bytes).to_string(),
    )
}
