//! What a scheduler tells on its stream, as values.

use servo_model::{AttemptId, RunId, TenantId, WorkerId};

use super::Seconds;
use super::demand::{PlanRef, Task};

/// Ready tasks of one run.
#[derive(Debug, Clone)]
pub struct OfferedRun {
    pub run: RunId,
    pub plan: PlanRef,
    pub backfill: bool,
    /// W3C traceparent and tracestate.
    pub trace: (String, String),
    pub tasks: Vec<OfferedTask>,
}

#[derive(Debug, Clone)]
pub struct OfferedTask {
    pub task: Task,
    pub attempt: u32,
    pub failures: u32,
    pub since: Seconds,
    pub item_json: String,
}

/// An attempt that holds a slot.
#[derive(Debug, Clone)]
pub struct LiveTask {
    pub attempt_id: AttemptId,
    pub run: RunId,
    pub plan: PlanRef,
    pub task: Task,
    pub attempt: u32,
    pub worker: Option<WorkerId>,
    pub since: Seconds,
    pub cancelling: bool,
    pub backfill: bool,
    /// Travels through the queue.
    pub pushed: bool,
    /// What its envelope needs beside the plan, while the queue is not known to have it.
    pub waiting: Option<PushOrder>,
}

/// What a ready task said that its plan does not.
#[derive(Debug, Clone)]
pub struct PushOrder {
    pub failures: u32,
    pub item_json: String,
    /// W3C traceparent and tracestate.
    pub trace: (String, String),
}

/// A part of what stands on a shard of runs, or all of it.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub shard: i16,
    pub epoch: u64,
    pub first: bool,
    pub last: bool,
    pub ready: Vec<OfferedRun>,
    pub live: Vec<LiveTask>,
}

/// What changed on a shard of runs.
#[derive(Debug, Clone, Default)]
pub struct Update {
    pub shard: i16,
    pub ready: Vec<OfferedRun>,
    pub withdrawn: Vec<Withdrawn>,
    pub ended: Vec<Ended>,
    pub cancelled: Vec<AttemptId>,
}

/// Tasks of a run that may no longer be admitted.
#[derive(Debug, Clone)]
pub struct Withdrawn {
    pub tenant: TenantId,
    pub run: RunId,
    /// Empty for all.
    pub tasks: Vec<Task>,
}

/// An attempt that no longer holds a slot.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    pub attempt_id: AttemptId,
    /// How long it held its slot.
    pub held: Seconds,
}
