//! Background work of the planner.

use std::sync::Arc;

use servo_mesh::Peer;
use servo_model::limits::REQUEST_IDEMPOTENCY_TTL;
use servo_proto::v1::TenantLimits;
use servo_store::{Store, StoreError};
use tokio::sync::watch;
use tonic::Status;

use crate::rpc::Limits;
use crate::store::requests;

const REQUESTS_PER_PASS_MAX: i64 = 1000;

/// Forgets first answers that are older than their promise.
pub(crate) async fn expire_requests(store: Store) -> Result<u64, StoreError> {
    requests::expire(
        store.loops(),
        REQUEST_IDEMPOTENCY_TTL,
        REQUESTS_PER_PASS_MAX,
    )
    .await
}

/// Follows how many tasks runs may have, so that a dry run tells what TriggerRun would, until the stream breaks.
pub(crate) async fn follow_limits(
    quota: Peer,
    board: Arc<watch::Sender<Limits>>,
) -> Result<(), Status> {
    let read = |told: &TenantLimits| told.limits.and_then(|limits| limits.max_tasks_per_run);
    servo_mesh::follow_limits(quota, read, |limits| drop(board.send_replace(limits))).await
}
