//! What can happen to a run that exists, with every value checked at the door.

use std::sync::Arc;

use servo_model::AttemptId;
use servo_model::retry::ErrorCategory;

use super::Time;
use super::plan::Plan;
use servo_model::TaskRef;

/// A worker process, as a hash of the name it gave itself.
pub type Session = u64;

#[derive(Debug, Clone)]
pub enum Event {
    PlanCreated {
        plan: Arc<Plan>,
    },
    PlanFailed {
        message: String,
    },
    Claimed {
        task: TaskRef,
        attempt: u32,
        attempt_id: AttemptId,
        worker: Option<[u8; 16]>,
        pushed: bool,
        ack_us: i64,
    },
    Enqueued {
        task: TaskRef,
        attempt_id: AttemptId,
    },
    Started {
        task: TaskRef,
        attempt_id: AttemptId,
        worker: Option<[u8; 16]>,
        session: Session,
    },
    Finished(Box<Finished>),
    Timer {
        kind: TimerKind,
        task: Option<TaskRef>,
        attempt_id: Option<AttemptId>,
    },
    CancelRequested {
        version: u64,
        by_system: bool,
    },
    Paused {
        version: u64,
    },
    Resumed {
        version: u64,
    },
    ForceCancelled {
        task: TaskRef,
        attempt_id: AttemptId,
        version: u64,
    },
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub struct Finished {
    pub task: TaskRef,
    pub attempt_id: AttemptId,
    pub worker: Option<[u8; 16]>,
    pub session: Session,
    /// When user code began, as the callback service learned it.
    pub started_at: Option<Time>,
    pub outcome: Outcome,
    pub outputs: Vec<Output>,
    /// For what is mapped over it: how many items it names, and their encoded list.
    pub items: Option<(u32, Arc<[u8]>)>,
    /// What its checks found, in its order.
    pub checks: Vec<CheckFinding>,
    /// `servo.v1.TaskError`, encoded, for the row; empty without one.
    pub error: Vec<u8>,
    /// The error's sentence.
    pub message: String,
}

/// What it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub asset_key: String,
    pub partition_key: String,
    pub code_version: String,
    /// `servo.v1.Output`, encoded.
    pub output: Vec<u8>,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFinding {
    pub name: String,
    pub passed: bool,
    /// `servo.v1.Severity`.
    pub severity: i16,
    /// `servo.v1.CheckResult`, encoded.
    pub result: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Succeeded,
    /// A blocking check failed and the asset keeps such outputs for a decision; meanwhile readers get an earlier
    /// version, if there is a good one.
    Quarantined {
        has_good_version: bool,
    },
    /// A blocking check failed and there is no quarantine.
    CheckFailed,
    /// The error's type decides together with its category; user code may have asked for a retry or forbidden one.
    Failed {
        category: ErrorCategory,
        error_type: String,
        retriable: Option<bool>,
    },
    Skipped,
    Cancelled,
    Interrupted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerKind {
    Retry,
    DispatchAck,
    Heartbeat,
    Execution,
    RunDuration,
}
