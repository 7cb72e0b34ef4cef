//! Follows the limits that the quota service streams.

use std::sync::Arc;
use std::time::Duration;

use servo_mesh::Peer;
use servo_service::follow_limits;
use tokio::sync::watch;
use tonic::Status;

use crate::core::Limits;
use crate::shards::Shards;
use crate::wire;

/// How soon a broken stream is opened again.
pub(crate) const EVERY: Duration = Duration::from_millis(500);

/// Distributes the limits within this instance. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LimitsFollower {
    pub(crate) quota: Peer,
    pub(crate) limits_tx: Arc<watch::Sender<Limits>>,
    pub(crate) shards: Shards,
}

impl LimitsFollower {
    /// Follows the stream until it breaks.
    pub(crate) async fn run_once(self) -> Result<(), Status> {
        let LimitsFollower {
            quota,
            limits_tx,
            shards,
        } = self;
        follow_limits(quota, wire::run_limits, |limits| {
            limits_tx.send_replace(limits);
            shards.recheck_capacity();
            std::future::ready(())
        })
        .await
    }
}
