//! The result of folding events: the rows to write and the messages for the dispatcher.

use servo_model::states::{MaterializationState, RunState, TaskState, TransitionReason};
use servo_model::{AttemptId, Timestamp};

use super::event::CheckFinding;
use servo_model::TaskRef;

/// The changes of one run over all events of a flush. Each row is written once, with its final
/// values.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Whether the run's row changed.
    pub run: bool,
    /// Tasks without a row.
    pub created: Vec<TaskRef>,
    /// Tasks whose row changed; may contain a task more than once.
    pub changed: Vec<TaskRef>,
    /// Errors of attempts, for the rows of their tasks: `servo.v1.TaskError`, encoded.
    pub errors: Vec<(TaskRef, Vec<u8>)>,
    pub materialized: Vec<Materialized>,
    pub partitions: Vec<PartitionUpdate>,
    pub checks: Vec<RecordedCheck>,
    /// Tasks that became ready or are offered again.
    pub ready: Vec<TaskRef>,
    /// The dispatcher must not admit tasks of the run any more.
    pub withdrawn: bool,
    /// Ended attempts, and how long they held a slot, in microseconds.
    pub ended: Vec<(AttemptId, i64)>,
    /// Tasks whose attempt must stop.
    pub cancelling: Vec<TaskRef>,
    /// Tasks with a new due time.
    pub due: Vec<TaskRef>,
    /// Every transition of a task.
    pub history: Vec<TaskChange>,
    pub run_history: Vec<(Option<RunState>, RunState, TransitionReason)>,
}

/// A transition of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskChange {
    pub task_ref: TaskRef,
    pub from: TaskState,
    pub to: TaskState,
    pub reason: TransitionReason,
    pub attempt: u32,
}

/// A materialization that an attempt wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Materialized {
    pub task_ref: TaskRef,
    pub attempt_id: AttemptId,
    pub asset_key: String,
    pub partition_key: String,
    pub promotion: Promotion,
    pub output: Vec<u8>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promotion {
    Promoted,
    Quarantined,
    /// Written after the run was cancelled: stored, but never read.
    Late,
}

impl Promotion {
    /// The first state of the materialization.
    pub const fn state(self) -> MaterializationState {
        match self {
            Promotion::Promoted => MaterializationState::Promoted,
            Promotion::Quarantined => MaterializationState::Quarantined,
            Promotion::Late => MaterializationState::Committed,
        }
    }
}

/// The result of a check of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCheck {
    pub task_ref: TaskRef,
    pub attempt_id: AttemptId,
    /// The index of the check among those of the attempt.
    pub index: i16,
    pub found: CheckFinding,
    pub at: Timestamp,
}

/// The end of an attempt to write a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionUpdate {
    pub asset_key: String,
    pub partition_key: String,
    pub attempt_id: AttemptId,
    pub at: Timestamp,
    pub state: TaskState,
    /// Whether the output is promoted.
    pub promoted: bool,
    pub code_version: String,
}

impl Changes {
    /// Whether no run or task row changed.
    pub fn writes_no_row(&self) -> bool {
        !self.run && self.created.is_empty() && self.changed.is_empty()
    }
}
