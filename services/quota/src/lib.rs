//! The quota is the authority on limits, usage and cost.
//!
//! It owns quotas, pools, prices and budgets (schema `quota`) and streams the effective limits to those who enforce them.
//!
//! **Stays absent:** being asked on the hot path.

mod rpc;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh};
use servo_model::Service;
use servo_proto::v1::quota_service_server::QuotaServiceServer;
use servo_store::{DatabaseConfig, Store};

use crate::rpc::Quota;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
}

/// Serves the API until the process is told to stop.
pub async fn start(mesh: Mesh<Config>) -> Result<(), Fault> {
    let store = Store::connect(Service::Quota, &mesh.config().database)?;
    mesh.serve(QuotaServiceServer::new(Quota)).ready_when(store.readiness()).until_signal().await
}
