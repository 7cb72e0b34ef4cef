//! What a scheduler tells on its stream, as values.

use servo_model::{AttemptId, RunId, TenantId, WorkerId};

use super::Seconds;
use super::demand::{PlanRef, Task};

/// Ready tasks of one run.
#[derive(Debug, Clone)]
pub(crate) struct OfferedRun {
    pub(crate) run: RunId,
    pub(crate) plan: PlanRef,
    pub(crate) priority: i32,
    pub(crate) backfill: bool,
    /// W3C traceparent and tracestate.
    pub(crate) trace: (String, String),
    pub(crate) tasks: Vec<OfferedTask>,
}

#[derive(Debug, Clone)]
pub(crate) struct OfferedTask {
    pub(crate) task: Task,
    pub(crate) attempt: u32,
    pub(crate) failures: u32,
    pub(crate) since: Seconds,
    pub(crate) item_json: String,
}

/// An attempt that holds a slot.
#[derive(Debug, Clone)]
pub(crate) struct LiveTask {
    pub(crate) attempt_id: AttemptId,
    pub(crate) run: RunId,
    pub(crate) plan: PlanRef,
    pub(crate) task: Task,
    pub(crate) attempt: u32,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) since: Seconds,
    pub(crate) cancelling: bool,
    pub(crate) backfill: bool,
}

/// A part of what stands on a shard of runs, or all of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) shard: i16,
    pub(crate) epoch: u64,
    pub(crate) first: bool,
    pub(crate) last: bool,
    pub(crate) ready: Vec<OfferedRun>,
    pub(crate) live: Vec<LiveTask>,
}

/// What changed on a shard of runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Update {
    pub(crate) shard: i16,
    pub(crate) ready: Vec<OfferedRun>,
    pub(crate) withdrawn: Vec<Withdrawn>,
    pub(crate) ended: Vec<Ended>,
    pub(crate) cancelled: Vec<AttemptId>,
}

/// Tasks of a run that may no longer be admitted.
#[derive(Debug, Clone)]
pub(crate) struct Withdrawn {
    pub(crate) tenant: TenantId,
    pub(crate) run: RunId,
    /// Empty for all.
    pub(crate) tasks: Vec<Task>,
}

/// An attempt that no longer holds a slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) attempt_id: AttemptId,
    /// How long it held its slot.
    pub(crate) held: Seconds,
}
