//! The planner registers what tenants declare and turns selections into plans.
//!
//! It owns deployments, assets and plans (schema `planner`). A plan is a value: made once, stored under its content's hash,
//! never changed.
//!
//! **Stays absent:** writes to runs or tasks; a planner may die at any point and nothing is lost.

mod core;
mod rpc;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh};
use servo_model::Service;
use servo_proto::v1::planner_service_server::PlannerServiceServer;
use servo_store::{DatabaseConfig, Store};

use crate::rpc::Planner;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
}

/// Serves the API until the process is told to stop.
pub async fn start(mesh: Mesh<Config>) -> Result<(), Fault> {
    let store = Store::connect(Service::Planner, &mesh.config().database)?;
    mesh.serve(PlannerServiceServer::new(Planner)).ready_when(store.readiness()).until_signal().await
}
