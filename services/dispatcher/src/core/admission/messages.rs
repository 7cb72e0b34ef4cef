//! Messages of a scheduler's stream, as values.

use std::time::Duration;

use servo_model::{AttemptId, Epoch, RunId, ShardId, TaskRef, TenantId, Timestamp, WorkerId};

use crate::core::demand::PlanRef;
use crate::core::live::DispatchDetails;

/// Ready tasks of one run.
#[derive(Debug, Clone)]
pub struct ReadyRun {
    pub run: RunId,
    pub plan: PlanRef,
    pub backfill: bool,
    /// W3C traceparent and tracestate.
    pub trace: (String, String),
    pub tasks: Vec<ReadyTask>,
}

/// An offer.
#[derive(Debug, Clone)]
pub struct ReadyTask {
    pub task: TaskRef,
    /// The number of its next attempt.
    pub attempt: u32,
    pub failures: u32,
    pub item_json: String,
}

/// A live attempt as a snapshot reports it.
#[derive(Debug, Clone)]
pub struct SnapshotAttempt {
    pub attempt_id: AttemptId,
    pub run: RunId,
    pub plan: PlanRef,
    pub task: TaskRef,
    pub attempt: u32,
    pub worker: Option<WorkerId>,
    pub since: Timestamp,
    pub cancelling: bool,
    pub backfill: bool,
    /// Delivered through the push queue.
    pub pushed: bool,
    /// Everything that the envelope needs in addition to the plan, while the push queue is not
    /// known to have it.
    pub unsent: Option<DispatchDetails>,
}

/// The content of an execution shard, or a part of it, for the tenants of the admission shards that
/// the stream was opened for.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub shard: ShardId,
    pub epoch: Epoch,
    pub first: bool,
    pub last: bool,
    pub ready: Vec<ReadyRun>,
    pub live: Vec<SnapshotAttempt>,
}

/// A change of an execution shard.
#[derive(Debug, Clone)]
pub struct Update {
    pub shard: ShardId,
    pub ready: Vec<ReadyRun>,
    pub withdrawn: Vec<Withdrawn>,
    pub ended: Vec<Ended>,
    pub cancelled: Vec<AttemptId>,
}

/// A run whose ready tasks may no longer be admitted.
#[derive(Debug, Clone)]
pub struct Withdrawn {
    pub tenant: TenantId,
    pub run: RunId,
}

/// An attempt that no longer holds a slot.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    pub attempt_id: AttemptId,
    /// How long it held its slot.
    pub held: Duration,
}
