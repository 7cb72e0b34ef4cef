//! The gateway: the one public door of the mesh.
//!
//! It finds out who calls (API keys), checks that the request is about the caller's own tenant and workspace, adds
//! the caller metadata that services believe from nobody else, and passes gRPC on as it came, streams too.
//! Start reading at [`pass::Pass`]; what a call must show is decided in [`core::door`].
//!
//! **Stays absent:** what a call means. That is the affair of the service behind.

mod admitting;
pub mod core;
mod pass;
mod rpc;

use std::sync::Arc;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh, ServiceFuture};
use servo_model::Service;
use servo_proto::v1::access_service_server::AccessServiceServer;
use servo_store::{DatabaseConfig, Store};

use crate::core::keys::{ApiKey, ApiKeys};
use crate::pass::Pass;
use crate::rpc::Access;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    pub gateway: Doors,
}

/// The `[gateway]` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Doors {
    pub api_keys: Vec<ApiKey>,
}

/// Serves the public door until the process is told to stop.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let store = Store::connect(Service::Gateway, &mesh.config().database)?;
    let keys = ApiKeys::new(&mesh.config().gateway.api_keys)
        .map_err(|bad| Fault::config(format!("gateway.api_keys[{}]", bad.index), bad.reason))?;
    let pass = Pass::new(
        &mesh,
        &store,
        Arc::new(keys),
        AccessServiceServer::new(Access),
    );
    mesh.serve_public(pass.into_handler())
        .ready_when(store.readiness())
        .until_signal()
        .await
}
