//! The automation service turns time and events into run requests.
//!
//! It owns schedules, ticks, sensors and evaluations (schema `automation`).
//!
//! **Stays absent:** running user code; a poll is an `evaluate` task on a worker.

mod rpc;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh, ServiceFuture};
use servo_model::Service;
use servo_proto::v1::automation_service_server::AutomationServiceServer;
use servo_store::{DatabaseConfig, Store};

use crate::rpc::Automation;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
}

/// Serves the API until the process is stopped.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let store = Store::connect(Service::Automation, &mesh.config().database)?;
    mesh.serve(AutomationServiceServer::new(Automation))
        .ready_when(store.readiness())
        .until_signal()
        .await
}
