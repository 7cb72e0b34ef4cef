//! What folding a batch of events changed: rows to write, and news for the dispatcher.

use servo_model::AttemptId;
use servo_model::states::{MaterializationState, RunState, TaskState, TransitionReason};

use super::Time;
use super::event::CheckFinding;
use servo_model::TaskRef;

/// Gathered over all events of one run in a batch; rows are written once, as they stand at its end.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The run's own row.
    pub run: bool,
    /// Tasks that have no row yet.
    pub created: Vec<TaskRef>,
    /// Tasks whose row changed; may name one more than once.
    pub changed: Vec<TaskRef>,
    /// Errors of attempts, for the rows of their tasks: `servo.v1.TaskError`, encoded.
    pub errors: Vec<(TaskRef, Vec<u8>)>,
    pub materialized: Vec<Materialized>,
    pub partitions: Vec<PartitionUpdate>,
    pub checks: Vec<RecordedCheck>,
    /// Became ready, or are offered again.
    pub ready: Vec<TaskRef>,
    /// Nothing of the run may be admitted any more.
    pub withdrawn: bool,
    /// Attempts that no longer hold a slot, and how long they did.
    pub ended: Vec<(AttemptId, i64)>,
    /// Attempts that are to stop.
    pub cancelled: Vec<TaskRef>,
    /// Timers to arm.
    pub due: Vec<TaskRef>,
    /// Every change of state.
    pub history: Vec<TaskChange>,
    pub run_history: Vec<(Option<RunState>, RunState, TransitionReason)>,
}

/// One change of a task's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskChange {
    pub task_ref: TaskRef,
    pub from: TaskState,
    pub to: TaskState,
    pub reason: TransitionReason,
    pub attempt: u32,
}

/// A version of data that an attempt made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Materialized {
    pub task_ref: TaskRef,
    pub attempt_id: AttemptId,
    pub asset_key: String,
    pub partition_key: String,
    pub promotion: Promotion,
    pub output: Vec<u8>,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promotion {
    Promoted,
    Quarantined,
    /// Came after the cancel: kept, never read.
    Late,
}

impl Promotion {
    /// The state that a version begins in.
    pub const fn state(self) -> MaterializationState {
        match self {
            Promotion::Promoted => MaterializationState::Promoted,
            Promotion::Quarantined => MaterializationState::Quarantined,
            Promotion::Late => MaterializationState::Committed,
        }
    }
}

/// What a check of an attempt found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCheck {
    pub task_ref: TaskRef,
    pub attempt_id: AttemptId,
    /// Its place among those of the attempt.
    pub place: i16,
    pub found: CheckFinding,
    pub at: Time,
}

/// How an attempt at a partition ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionUpdate {
    pub asset_key: String,
    pub partition_key: String,
    pub attempt_id: AttemptId,
    pub at: Time,
    pub state: TaskState,
    /// Readers get what it made.
    pub promoted: bool,
    pub code_version: String,
}

impl Changes {
    /// Whether there is a row to write.
    pub fn is_empty(&self) -> bool {
        !self.run && self.created.is_empty() && self.changed.is_empty()
    }
}
