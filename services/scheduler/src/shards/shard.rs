//! One shard in memory.

use std::collections::HashMap;

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
}

/// A run's number, from the place of its first event.
pub(super) fn run_number(shard: i16, position: i64) -> i64 {
    position * i64::from(servo_model::Stream::Execution.shards()) + i64::from(shard)
}
