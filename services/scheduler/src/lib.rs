//! The scheduler owns runs and tasks.
//!
//! Its instances lease the shards of the execution stream, append and fold events, and answer the run API (schema
//! `scheduler`).
//!
//! **Stays absent:** talking to workers; that is the dispatcher's and the callback's affair.

mod rpc;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh};
use servo_model::Service;
use servo_proto::v1::scheduler_service_server::SchedulerServiceServer;
use servo_store::{DatabaseConfig, Store};

use crate::rpc::Scheduler;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
}

/// Serves the API until the process is told to stop.
pub async fn start(mesh: Mesh<Config>) -> Result<(), Fault> {
    let store = Store::connect(Service::Scheduler, &mesh.config().database)?;
    mesh.serve(SchedulerServiceServer::new(Scheduler)).ready_when(store.readiness()).until_signal().await
}
