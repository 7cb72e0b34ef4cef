//! Background loops of the quota service.

pub(crate) mod limits;
pub(crate) mod usage;

use servo_model::limits::REQUEST_IDEMPOTENCY_TTL;
use servo_store::{Store, StoreError};

use crate::store::requests;

const REQUESTS_PER_PASS_MAX: i64 = 1000;

/// Deletes stored answers that are older than the idempotency period.
pub(crate) async fn expire_requests(store: Store) -> Result<u64, StoreError> {
    requests::expire(
        store.loops(),
        REQUEST_IDEMPOTENCY_TTL,
        REQUESTS_PER_PASS_MAX,
    )
    .await
}
