//! The events of a run, with validated values.

use std::sync::Arc;

use servo_model::retry::ErrorCategory;
use servo_model::{AttemptId, Timestamp};

use super::plan::Plan;
use servo_model::TaskRef;

/// The session of a worker process, as a hash of its name.
pub type Session = u64;

/// An event that [`fold`](super::fold()) applies to a run. RunRequested is not among them, because
/// it creates the run ([`Run::requested`](super::Run::requested)); QuarantineResolved is not,
/// because it changes a materialization ([`resolve`](super::resolve())).
#[derive(Debug, Clone)]
pub enum Event {
    PlanCreated {
        plan: Arc<Plan>,
    },
    PlanFailed {
        message: String,
    },
    DispatchRequested {
        task: TaskRef,
        attempt: u32,
        attempt_id: AttemptId,
        worker: Option<[u8; 16]>,
        pushed: bool,
        ack_us: i64,
    },
    DispatchEnqueued {
        task: TaskRef,
        attempt_id: AttemptId,
    },
    TaskStarted {
        task: TaskRef,
        attempt_id: AttemptId,
        worker: Option<[u8; 16]>,
        session: Session,
    },
    TaskFinished(Box<Finished>),
    TimerFired {
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

/// The end of an attempt.
#[derive(Debug, Clone)]
pub struct Finished {
    pub task: TaskRef,
    pub attempt_id: AttemptId,
    pub worker: Option<[u8; 16]>,
    pub session: Session,
    /// When user code began, as reported to the callback service.
    pub started_at: Option<Timestamp>,
    pub outcome: Outcome,
    pub outputs: Vec<Output>,
    /// The items for mapped downstream tasks: their number and their encoded list.
    pub items: Option<(u32, Arc<[u8]>)>,
    /// The results of its checks, in order.
    pub checks: Vec<CheckFinding>,
    /// `servo.v1.TaskError`, encoded, for the row; empty without one.
    pub error: Vec<u8>,
    /// The error message.
    pub message: String,
}

/// An output of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub asset_key: String,
    pub partition_key: String,
    pub code_version: String,
    /// `servo.v1.Output`, encoded.
    pub output: Vec<u8>,
}

/// The result of a check.
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
    /// A blocking check failed and the asset quarantines such outputs. Readers keep the previous
    /// promoted version, if there is one.
    Quarantined {
        has_good_version: bool,
    },
    /// A blocking check failed and the asset has no quarantine.
    CheckFailed,
    /// The error's type and category decide about a retry, unless user code requested or forbade
    /// one.
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
