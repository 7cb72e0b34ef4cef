//! The callback takes what workers report: starts, heartbeats, logs, outcomes.
//!
//! It verifies signatures without a database and keeps heartbeats and logs (schema `callback`).
//!
//! **Stays absent:** verdicts about liveness; the scheduler judges.

mod rpc;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh};
use servo_model::Service;
use servo_proto::v1::callback_service_server::CallbackServiceServer;
use servo_store::{DatabaseConfig, Store};

use crate::rpc::Callback;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
}

/// Serves the API until the process is told to stop.
pub async fn start(mesh: Mesh<Config>) -> Result<(), Fault> {
    let store = Store::connect(Service::Callback, &mesh.config().database)?;
    mesh.serve(CallbackServiceServer::new(Callback)).ready_when(store.readiness()).until_signal().await
}
