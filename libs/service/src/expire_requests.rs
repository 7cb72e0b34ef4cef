//! Deletes stored answers that are older than the idempotency period.

use std::time::Duration;

use servo_model::limits::REQUEST_IDEMPOTENCY_TTL;
use servo_store::{LoopStore, Store, StoreError};

pub const INTERVAL: Duration = Duration::from_secs(600);
const REQUESTS_PER_PASS_MAX: i64 = 1000;

/// Deletes some answers and returns how many. `expire` deletes at most a number of answers that are
/// older than an age; every service has its own table and statement.
pub async fn run_once(
    store: Store,
    expire: impl AsyncFnOnce(&LoopStore, Duration, i64) -> Result<u64, StoreError>,
) -> Result<u64, StoreError> {
    expire(
        store.loops(),
        REQUEST_IDEMPOTENCY_TTL,
        REQUESTS_PER_PASS_MAX,
    )
    .await
}
