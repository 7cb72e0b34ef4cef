//! Following the limits that the quota service streams.

use servo_mesh::{Peer, follow_limits};
use tonic::Status;

use super::engine::{Engine, Message};
use crate::wire;

/// Follows the stream until it breaks.
pub(crate) async fn follow(quota: Peer, engine: Engine) -> Result<(), Status> {
    follow_limits(quota, wire::limits, |limits| {
        engine.tell(Message::Limits(limits))
    })
    .await
}
