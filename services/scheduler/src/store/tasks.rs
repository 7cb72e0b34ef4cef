//! Tasks.

use servo_model::states::{TaskState, TransitionReason};
use servo_model::{AttemptId, TaskRef, TenantId, Timestamp};
use servo_store::sqlx::FromRow;
use servo_store::{LoopStore, StoreError, TenantTx, query};
use uuid::Uuid;

use crate::core::TaskRow;

/// The columns from which a lane restores a task.
#[derive(Debug, FromRow)]
pub(crate) struct StoredTask {
    pub run_number: i64,
    pub ordinal: i32,
    pub item: i32,
    pub attempt: i32,
    pub failures: i32,
    pub state: i16,
    pub reason: i16,
    pub cancelling: bool,
    pub pushed: bool,
    pub changed_at: Timestamp,
    pub ready_at: Option<Timestamp>,
    pub claimed_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub due_at: Option<Timestamp>,
    pub attempt_id: Option<Uuid>,
    pub worker_id: Option<Uuid>,
    pub session: Option<i64>,
    pub items: Option<Vec<u8>>,
}

impl StoredTask {
    pub(crate) fn task_ref(&self) -> TaskRef {
        TaskRef {
            ordinal: self.ordinal.unsigned_abs(),
            map_index: u32::try_from(self.item).ok(),
        }
    }

    /// `None` when another version wrote a state that this one does not know.
    pub(crate) fn task_row(&self) -> Option<TaskRow> {
        Some(TaskRow {
            state: TaskState::from_code(self.state)?,
            reason: TransitionReason::from_code(self.reason)?,
            attempt: self.attempt.unsigned_abs(),
            failures: self.failures.unsigned_abs(),
            attempt_id: self
                .attempt_id
                .map(|id| AttemptId::from_bytes(id.into_bytes())),
            cancelling: self.cancelling,
            pushed: self.pushed,
            session: self.session.map(i64::cast_unsigned),
            worker: self.worker_id.map(Uuid::into_bytes),
            changed_at: self.changed_at,
            first_ready_at: self.ready_at,
            claimed_at: self.claimed_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            due_at: self.due_at,
        })
    }
}

/// The columns of a task that the API shows.
#[derive(Debug, FromRow)]
pub(crate) struct TaskRecord {
    #[sqlx(flatten)]
    pub task: StoredTask,
    pub error: Option<Vec<u8>>,
    pub beat_at: Option<Timestamp>,
}

pub(crate) async fn list_of_runs(
    loops: &LoopStore,
    run_numbers: &[i64],
) -> Result<Vec<StoredTask>, StoreError> {
    loops
        .all(query(include_str!("list_tasks_of_runs.sql")).bind(run_numbers))
        .await
}

/// The last task of a page: its ordinal and its item, -1 for none.
pub(crate) type TaskCursor = (i32, i32);

pub(crate) async fn list(
    tx: &mut TenantTx,
    run_number: i64,
    (ordinal, item): TaskCursor,
    limit: usize,
) -> Result<Vec<TaskRecord>, StoreError> {
    let select = query(include_str!("list_tasks.sql"))
        .bind(run_number)
        .bind(ordinal)
        .bind(item)
        .bind(limit as i64);
    tx.all(select).await
}

pub(crate) async fn list_open(
    tx: &mut TenantTx,
    run_number: i64,
    (ordinal, item): TaskCursor,
    limit: usize,
) -> Result<Vec<StoredTask>, StoreError> {
    let select = query(include_str!("list_open_tasks.sql"))
        .bind(run_number)
        .bind(ordinal)
        .bind(item)
        .bind(limit as i64);
    tx.all(select).await
}

pub(crate) async fn find(
    tx: &mut TenantTx,
    run_number: i64,
    task: TaskRef,
) -> Result<Option<TaskRecord>, StoreError> {
    let select = query(include_str!("find_task.sql"))
        .bind(run_number)
        .bind(task.ordinal.cast_signed())
        .bind(task.map_index.map_or(-1, u32::cast_signed));
    tx.optional(select).await
}

/// Finds tasks by their ordinals, without mapped tasks.
pub(crate) async fn find_by_ordinals(
    tx: &mut TenantTx,
    run_number: i64,
    ordinals: Vec<i32>,
) -> Result<Vec<StoredTask>, StoreError> {
    let select = query(include_str!("find_tasks_by_ordinal.sql"))
        .bind(run_number)
        .bind(ordinals);
    tx.all(select).await
}

/// How many mapped tasks each mapped parent has, by ordinal.
pub(crate) async fn count_mapped(
    tx: &mut TenantTx,
    run_number: i64,
) -> Result<Vec<(i32, i64)>, StoreError> {
    tx.all(query(include_str!("count_mapped_tasks.sql")).bind(run_number))
        .await
}

pub(crate) async fn count_by_state(
    tx: &mut TenantTx,
    run_number: i64,
) -> Result<Vec<(i16, i64)>, StoreError> {
    tx.all(query(include_str!("count_tasks_by_state.sql")).bind(run_number))
        .await
}

/// Returns run number, state and count.
pub(crate) async fn count_by_run_and_state(
    tx: &mut TenantTx,
    run_numbers: Vec<i64>,
) -> Result<Vec<(i64, i16, i64)>, StoreError> {
    tx.all(query(include_str!("count_tasks_of_runs.sql")).bind(run_numbers))
        .await
}

/// Lists the plan id and ordinal of the tasks of a workspace that have an attempt in flight.
pub(crate) async fn list_live(
    tx: &mut TenantTx,
    tenant: &TenantId,
    workspace: &str,
) -> Result<Vec<(Vec<u8>, i32)>, StoreError> {
    let select = query(include_str!("list_live_tasks.sql"))
        .bind(tenant)
        .bind(workspace);
    tx.all(select).await
}
