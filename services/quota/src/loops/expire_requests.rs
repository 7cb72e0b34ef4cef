//! Deletes stored answers that are older than the idempotency period.

use std::time::Duration;

use servo_model::limits::REQUEST_IDEMPOTENCY_TTL;
use servo_store::{Store, StoreError};

use crate::store::requests;

pub(crate) const INTERVAL: Duration = Duration::from_secs(600);
const REQUESTS_PER_PASS_MAX: i64 = 1000;

pub(crate) async fn run_once(store: Store) -> Result<u64, StoreError> {
    requests::expire(
        store.loops(),
        REQUEST_IDEMPOTENCY_TTL,
        REQUESTS_PER_PASS_MAX,
    )
    .await
}
