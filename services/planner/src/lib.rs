//! The planner registers deployments and turns selections into plans.
//!
//! It owns deployments, assets and plans (schema `planner`). A plan is a value: made once, stored
//! under its content's hash, never changed. Start reading at [`core::plan`]; manifests are checked
//! in [`core::check`].
//!
//! **Stays absent:** writes to runs or tasks; a planner may die at any point and nothing is lost.

mod artifacts;
mod core;
mod loops;
mod rpc;
mod store;

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh, Pace, ServiceFuture};
use servo_model::Service;
use servo_proto::mesh::v1::planner_mesh_service_server::PlannerMeshServiceServer;
use servo_proto::v1::planner_service_server::PlannerServiceServer;
use servo_service::expire_requests;
use servo_service::settings::Paging;
use servo_store::{DatabaseConfig, Store};
use tokio::sync::watch;

use crate::loops::limits as limits_loop;
use crate::rpc::{Planner, TaskLimits};
use crate::store::requests;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    pub paging: Paging,
    #[serde(default)]
    pub planner: Section,
}

/// The `[planner]` section.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// The directory of uploaded artifacts. Without it uploads are refused.
    pub artifacts: Option<PathBuf>,
}

/// Serves the API until the process is stopped.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let store = Store::connect(Service::Planner, &mesh.config().database)?;
    let (limits_tx, limits) = watch::channel(TaskLimits::default());
    let limits_tx = Arc::new(limits_tx);
    let quota = mesh.peer(Service::Quota);
    let planner = Planner::new(store.clone(), mesh.config(), limits)?;
    let planner = Arc::new(planner);
    mesh.serve(PlannerServiceServer::from_arc(planner.clone()))
        .and(PlannerMeshServiceServer::from_arc(planner))
        .ready_when(store.readiness())
        .with_loop(
            "limits",
            Pace::every(limits_loop::RETRY).interrupted_by_drain(),
            move || limits_loop::run_once(quota.clone(), limits_tx.clone()),
        )
        .with_loop(
            "expire",
            Pace::every(expire_requests::INTERVAL),
            move || expire_requests::run_once(store.clone(), requests::expire),
        )
        .until_signal()
        .await
}
