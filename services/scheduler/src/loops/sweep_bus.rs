//! Retention of the bus: deletes messages that all consumers have processed, in small batches.

use std::time::Duration;

use servo_bus::{BusDoorbell, Topic};
use servo_store::{LoopStore, StoreError};

pub(crate) const EVERY: Duration = Duration::from_secs(10);
/// How long processed messages are kept.
const MESSAGES_KEPT: Duration = Duration::from_secs(3_600);
const MESSAGES_PER_DELETE: i32 = 1_000;

/// Checks whether the topic has consumers, and deletes a batch of old messages.
pub(crate) async fn run_once(doorbell: BusDoorbell, loops: LoopStore) -> Result<u64, StoreError> {
    doorbell.refresh(&loops).await?;
    servo_bus::expire(&loops, Topic::Runs, MESSAGES_KEPT, MESSAGES_PER_DELETE).await
}
