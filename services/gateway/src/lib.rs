//! The gateway: the public entry for gRPC.
//!
//! It authenticates the caller by API key, or leaves a presigned call to the callback service,
//! which verifies its signature. It expands the caller's roles into the permissions that it holds in
//! the tenant and workspace of the request, refuses what these do not allow, adds the caller
//! metadata that services accept from no other client, and forwards gRPC calls and streams
//! unchanged. Start reading at [`proxy::Proxy`]; [`core::access`] decides which credential a call
//! needs, [`core::api_keys`] what its principal holds.
//!
//! **Stays absent:** the meaning of calls. Only the service behind the gateway knows it.

pub mod core;
mod proxy;
mod rpc;

use std::sync::Arc;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh, ServiceFuture};
use servo_model::Service;
use servo_proto::v1::access_service_server::AccessServiceServer;
use servo_store::{DatabaseConfig, Store};

use crate::core::api_keys::{ApiKey, ApiKeys};
use crate::proxy::Proxy;
use crate::rpc::Access;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    pub gateway: Section,
}

/// The `[gateway]` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    pub api_keys: Vec<ApiKey>,
}

/// Serves the public API until the process drains.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let store = Store::connect(Service::Gateway, &mesh.config().database)?;
    let keys = ApiKeys::new(&mesh.config().gateway.api_keys)
        .map_err(|bad| Fault::config(format!("gateway.api_keys[{}]", bad.index), bad.reason))?;
    let proxy = Proxy::new(
        &mesh,
        &store,
        Arc::new(keys),
        AccessServiceServer::new(Access),
    );
    mesh.serve_public(proxy.into_handler())
        .ready_when(store.readiness())
        .until_signal()
        .await
}
