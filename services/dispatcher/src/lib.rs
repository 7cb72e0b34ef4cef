//! The dispatcher hands ready tasks to workers in fair order.
//!
//! It leases admission shards, claims by append, signs envelopes, and keeps the worker registry (schema `dispatcher`).
//!
//! **Stays absent:** writes to tasks; a claim is an event like any other.

mod core;
mod rpc;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh};
use servo_model::Service;
use servo_proto::v1::dispatcher_service_server::DispatcherServiceServer;
use servo_store::{DatabaseConfig, Store};

use crate::rpc::Dispatcher;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
}

/// Serves the API until the process is told to stop.
pub async fn start(mesh: Mesh<Config>) -> Result<(), Fault> {
    let store = Store::connect(Service::Dispatcher, &mesh.config().database)?;
    mesh.serve(DispatcherServiceServer::new(Dispatcher)).ready_when(store.readiness()).until_signal().await
}
