//! Follows each tenant's limit of tasks per run, so that a dry run applies the same limit as
//! TriggerRun.

use std::sync::Arc;
use std::time::Duration;

use servo_mesh::Peer;
use servo_proto::mesh::v1::TenantLimits;
use servo_service::follow_limits;
use tokio::sync::watch;
use tonic::Status;

use crate::rpc::TaskLimits;

/// Delay before a broken stream of limits is opened again.
pub(crate) const RETRY: Duration = Duration::from_secs(5);

/// Follows the stream until it breaks.
pub(crate) async fn run_once(
    quota: Peer,
    limits_tx: Arc<watch::Sender<TaskLimits>>,
) -> Result<(), Status> {
    let read = |update: &TenantLimits| update.limits.and_then(|limits| limits.max_tasks_per_run);
    let publish = |limits| {
        limits_tx.send_replace(limits);
        std::future::ready(())
    };
    follow_limits(quota, read, publish).await
}
