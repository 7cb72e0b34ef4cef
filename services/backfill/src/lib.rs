//! The backfill service.

mod rpc;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh};
use servo_model::Service;
use servo_proto::v1::backfill_service_server::BackfillServiceServer;
use servo_store::{DatabaseConfig, Store};

use crate::rpc::Backfill;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
}

/// Serves the API until the process is told to stop.
pub async fn start(mesh: Mesh<Config>) -> Result<(), Fault> {
    let store = Store::connect(Service::Backfill, &mesh.config().database)
        .map_err(|bad| Fault::config(format!("database.{}", bad.key), bad.fault))?;
    mesh.serve(BackfillServiceServer::new(Backfill))
        .ready_when(move || {
            let store = store.clone();
            async move { store.check().await }
        })
        .until_signal()
        .await
}
