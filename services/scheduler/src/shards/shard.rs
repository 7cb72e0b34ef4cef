//! One shard in memory.

use std::collections::{HashMap, HashSet};

use servo_model::RunId;
use servo_store::Lease;

use crate::core::Run;

#[derive(Debug)]
pub(super) struct Shard {
    pub(super) lease: Lease,
    /// Everything up to here is folded into the rows.
    pub(super) watermark: i64,
    /// When the last event was recorded; the next is not recorded before it.
    pub(super) recorded_at: i64,
    /// Runs under way. One that ended is forgotten.
    pub(super) runs: HashMap<RunId, Run>,
    /// Runs of which an event cannot be folded, as far as anybody asked for them; never among the others.
    pub(super) set_aside: HashSet<RunId>,
}

impl Shard {
    /// Whether nothing need be read to say how the run stands.
    pub(super) fn knows(&self, run: &RunId) -> bool {
        self.runs.contains_key(run) || self.set_aside.contains(run)
    }
}

/// A run's number, from the place of its first event.
pub(super) fn run_number(shard: i16, position: i64) -> i64 {
    position * i64::from(servo_model::Stream::Execution.shards()) + i64::from(shard)
}
