//! Retention of the ledger: creates future partitions and deletes expired rows in small batches.

use std::time::Duration;

use servo_model::limits::REQUEST_IDEMPOTENCY_TTL;
use servo_store::{LoopStore, StoreError};

use crate::store::{requests, sweeps};

/// Rarely, because partitions are created long before they are needed and rows deleted long after.
pub(crate) const EVERY: Duration = Duration::from_secs(3_600);
/// How many days of partitions are created ahead; an outage of this loop for a week does no harm.
const DAYS_AHEAD: i32 = 8;
const KEYS_PER_DELETE: i32 = 5_000;
/// Few calls record a request id, so one batch per pass is enough.
const REQUESTS_PER_PASS_MAX: i64 = 1_000;

/// Creates partitions and deletes expired keys and request ids. Returns how many rows were deleted.
pub(crate) async fn run_once(loops: LoopStore) -> Result<u64, StoreError> {
    sweeps::create_partitions(&loops, DAYS_AHEAD).await?;
    let mut deleted =
        requests::delete_expired(&loops, REQUEST_IDEMPOTENCY_TTL, REQUESTS_PER_PASS_MAX).await?;
    loop {
        let keys = sweeps::expire_keys(&loops, KEYS_PER_DELETE).await?;
        deleted += keys.unsigned_abs();
        if keys < i64::from(KEYS_PER_DELETE) {
            return Ok(deleted);
        }
    }
}
