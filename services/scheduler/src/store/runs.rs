//! Runs and tasks as they are stored.

use servo_model::states::{RunState, TaskState, TransitionReason};
use servo_model::{AttemptId, RunId, TaskRef};
use servo_store::sqlx::FromRow;
use servo_store::{LoopStore, StoreError, Timestamp, query};
use uuid::Uuid;

use crate::core::TaskRow;

#[derive(Debug, FromRow)]
pub(crate) struct StoredRun {
    pub run_number: i64,
    pub tenant: String,
    pub workspace: String,
    pub run_id: Uuid,
    pub state: i16,
    pub reason: i16,
    pub stopped_by: Option<i16>,
    pub version: i64,
    pub plan_id: Option<Vec<u8>>,
    pub request: Vec<u8>,
    pub error: Option<String>,
    pub error_ordinal: Option<i32>,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Why its events are no longer folded.
    pub set_aside: Option<String>,
}

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
            changed_at: self.changed_at.unix_us(),
            ready_at: self.ready_at.map(Timestamp::unix_us),
            claimed_at: self.claimed_at.map(Timestamp::unix_us),
            started_at: self.started_at.map(Timestamp::unix_us),
            ended_at: self.ended_at.map(Timestamp::unix_us),
            due_at: self.due_at.map(Timestamp::unix_us),
        })
    }
}

impl StoredRun {
    pub(crate) fn id(&self) -> RunId {
        RunId::from_bytes(self.run_id.into_bytes())
    }

    pub(crate) fn states(&self) -> Option<(RunState, TransitionReason)> {
        Some((
            RunState::from_code(self.state)?,
            TransitionReason::from_code(self.reason)?,
        ))
    }
}

/// What a new holder of the shard goes on with.
pub(crate) async fn open_runs(loops: &LoopStore, shard: i16) -> Result<Vec<StoredRun>, StoreError> {
    loops
        .all(query(include_str!("open_runs.sql")).bind(shard))
        .await
}

pub(crate) async fn runs_by_id(
    loops: &LoopStore,
    wanted: &[(&str, Uuid)],
) -> Result<Vec<StoredRun>, StoreError> {
    let select = query(include_str!("runs_by_id.sql"))
        .bind(wanted.iter().map(|(tenant, _)| *tenant).collect::<Vec<_>>())
        .bind(wanted.iter().map(|(_, run_id)| *run_id).collect::<Vec<_>>());
    loops.all(select).await
}

pub(crate) async fn tasks_of(
    loops: &LoopStore,
    run_numbers: &[i64],
) -> Result<Vec<StoredTask>, StoreError> {
    loops
        .all(query(include_str!("tasks_of.sql")).bind(run_numbers))
        .await
}
