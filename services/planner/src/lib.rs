//! The planner registers what tenants declare and turns selections into plans.
//!
//! It owns deployments, assets and plans (schema `planner`). A plan is a value: made once, stored under its content's hash,
//! never changed. Start reading at [`core::plan`]; what a manifest may say is decided in [`core::check`].
//!
//! **Stays absent:** writes to runs or tasks; a planner may die at any point and nothing is lost.

mod artifacts;
mod core;
mod graphs;
mod loops;
mod rpc;
mod store;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh, Pace, ServiceFuture};
use servo_model::Service;
use servo_proto::v1::planner_service_server::PlannerServiceServer;
use servo_store::{DatabaseConfig, Store};
use tokio::sync::watch;

use crate::rpc::{Limits, Planner};

const EXPIRE_EVERY: Duration = Duration::from_secs(600);
/// How soon a stream of limits that broke is opened again.
const LIMITS_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    #[serde(default)]
    pub planner: Section,
}

/// The `[planner]` section.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// Where uploaded artifacts lie. Without it uploads are refused.
    pub artifacts: Option<PathBuf>,
}

/// Serves the API until the process is told to stop.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let store = Store::connect(Service::Planner, &mesh.config().database)?;
    let (board, limits) = watch::channel(Limits::default());
    let (board, quota) = (Arc::new(board), mesh.peer(Service::Quota));
    let planner = Planner::new(store.clone(), mesh.config(), limits);
    mesh.serve(PlannerServiceServer::new(planner))
        .ready_when(store.readiness())
        .with_loop("limits", Pace::every(LIMITS_EVERY), move || {
            loops::follow_limits(quota.clone(), board.clone())
        })
        .with_loop("expire", Pace::every(EXPIRE_EVERY), move || {
            loops::expire_requests(store.clone())
        })
        .until_signal()
        .await
}
