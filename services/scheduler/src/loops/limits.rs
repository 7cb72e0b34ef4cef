//! Following the limits that the quota service streams.

use std::sync::Arc;

use servo_mesh::{Peer, follow_limits};
use tokio::sync::watch;
use tonic::Status;

use crate::core::Limits;
use crate::shards::Shards;
use crate::wire;

/// Who tells everybody in this instance. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Follower {
    pub(crate) quota: Peer,
    pub(crate) board: Arc<watch::Sender<Limits>>,
    pub(crate) shards: Shards,
}

impl Follower {
    /// Follows the stream until it breaks.
    pub(crate) async fn follow(self) -> Result<(), Status> {
        let Follower {
            quota,
            board,
            shards,
        } = self;
        follow_limits(quota, wire::run_limits, |limits| {
            board.send_replace(limits);
            shards.look_for_room();
        })
        .await
    }
}
