//! The backfill service splits ranges of partitions into chunks and runs them within limits.
//!
//! It owns backfills and chunks (schema `backfill`).
//!
//! **Stays absent:** starting tasks directly; a chunk is a run request like any other.

mod rpc;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh, ServiceFuture};
use servo_model::Service;
use servo_proto::v1::backfill_service_server::BackfillServiceServer;
use servo_store::{DatabaseConfig, Store};

use crate::rpc::Backfill;

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
    let store = Store::connect(Service::Backfill, &mesh.config().database)?;
    mesh.serve(BackfillServiceServer::new(Backfill))
        .ready_when(store.readiness())
        .until_signal()
        .await
}
