//! Following the limits that the quota service streams.

use servo_mesh::Peer;
use servo_service::follow_limits;
use tonic::Status;

use crate::engine::{Engine, Message};
use crate::wire;

/// Follows the stream until it breaks.
pub(crate) async fn run_once(quota: Peer, engine: Engine) -> Result<(), Status> {
    let publish = |limits| {
        let engine = engine.clone();
        async move { engine.send(Message::Limits(limits)).await }
    };
    follow_limits(quota, wire::limits, publish).await
}
