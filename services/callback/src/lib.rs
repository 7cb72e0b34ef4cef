//! The callback takes what workers report: starts, heartbeats, logs, outcomes.
//!
//! It verifies signatures without a database ([`core`]), forwards starts and outcomes in batches to the holders of their
//! runs' shards ([`forward`]) and keeps heartbeats and logs (schema `callback`).
//!
//! **Stays absent:** verdicts about liveness; the scheduler judges.

mod beats;
pub mod core;
mod forward;
mod holders;
mod logs;
mod rpc;

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use servo_mesh::config::SigningKeys;
use servo_mesh::{Fault, Mesh};
use servo_model::Service;
use servo_model::limits::HEARTBEAT_INTERVAL;
use servo_proto::v1::callback_service_server::CallbackServiceServer;
use servo_store::{DatabaseConfig, Store};

use crate::beats::Beats;
use crate::core::Door;
use crate::forward::Forward;
use crate::logs::Logs;
use crate::rpc::Callback;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    pub callback: Reports,
}

/// The `[callback]` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reports {
    /// The first signs, all of them verify; the dispatcher has the same.
    pub signing_keys: SigningKeys,
    /// Time from one beat of an attempt to the next.
    #[serde(default = "heartbeat_interval", deserialize_with = "servo_mesh::config::duration")]
    pub heartbeat_interval: Duration,
}

fn heartbeat_interval() -> Duration {
    HEARTBEAT_INTERVAL
}

/// Serves the API until the process is told to stop.
pub async fn start(mesh: Mesh<Config>) -> Result<(), Fault> {
    let mesh = Arc::new(mesh);
    let Config { database, callback: reports } = mesh.config();
    let store = Store::connect(Service::Callback, database)?;
    let keys = reports.signing_keys.ring().map_err(|error| Fault::config("callback.signing_keys", error))?;
    let callback = Callback {
        door: Arc::new(Door::new(keys, reports.heartbeat_interval)),
        forward: Forward::start(mesh.clone(), &store),
        beats: Beats::start(&store),
        logs: Logs::start(&store),
    };
    mesh.serve(CallbackServiceServer::new(callback)).ready_when(store.readiness()).until_signal().await
}
