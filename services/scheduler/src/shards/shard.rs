//! One shard in memory.

use std::collections::{HashMap, HashSet};

use servo_model::{Position, RunId, ShardId, Stream, Timestamp};
use servo_store::Lease;

use crate::core::Run;

#[derive(Debug)]
pub(super) struct Shard {
    pub(super) lease: Lease,
    /// The position up to which events are folded into the rows.
    pub(super) watermark: Position,
    /// When the last event was recorded; later events are not recorded before it.
    pub(super) recorded_at: Timestamp,
    /// All open runs that are not set aside. Timers and snapshots look only here, so an evicted run
    /// must be loaded again before the lane does anything else. An ended run is loaded for one
    /// flush.
    pub(super) runs: HashMap<RunId, Run>,
    /// Runs that are set aside, as far as they were accessed; never in `runs`.
    pub(super) set_aside: HashSet<RunId>,
}

impl Shard {
    /// Whether the run can be judged without reading its row.
    pub(super) fn contains(&self, run: &RunId) -> bool {
        self.runs.contains_key(run) || self.set_aside.contains(run)
    }
}

/// A run's number, derived from the shard and position of its first event.
pub(super) fn run_number(shard: ShardId, position: Position) -> i64 {
    position.get() * i64::from(Stream::Execution.shard_count()) + i64::from(shard.get())
}
