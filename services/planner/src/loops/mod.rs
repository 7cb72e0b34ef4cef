//! Background loops of the planner.

use std::sync::Arc;

use servo_mesh::Peer;
use servo_model::limits::REQUEST_IDEMPOTENCY_TTL;
use servo_proto::v1::TenantLimits;
use servo_store::{Store, StoreError};
use tokio::sync::watch;
use tonic::Status;

use crate::rpc::TaskLimits;
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

/// Follows each tenant's limit of tasks per run until the stream breaks, so that a dry run applies
/// the same limit as TriggerRun.
pub(crate) async fn follow_limits(
    quota: Peer,
    limits_tx: Arc<watch::Sender<TaskLimits>>,
) -> Result<(), Status> {
    let read = |update: &TenantLimits| update.limits.and_then(|limits| limits.max_tasks_per_run);
    servo_service::follow_limits(quota, read, |limits| {
        std::future::ready(drop(limits_tx.send_replace(limits)))
    })
    .await
}
