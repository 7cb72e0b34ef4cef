//! The quota service is the authority on limits, usage and cost.
//!
//! It owns quotas, pools, prices and budgets (schema `quota`) and streams the effective limits to
//! the services that enforce them. [`core::limits`] decides which limit applies; every change of a
//! setting goes through `rpc/support/change.rs`: the tenant's lock, the row, the event and the
//! answer in one transaction.
//!
//! Current use is known only to the services that enforce limits, so it is read from them on
//! request (`rpc/support/current_use.rs`).
//!
//! **Stays absent:** calls to this service on the hot path.

mod config;
mod core;
mod loops;
mod metrics;
mod rpc;
mod store;

use std::sync::Arc;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh, Pace, ServiceFuture};
use servo_model::Service;
use servo_proto::mesh::v1::quota_mesh_service_server::QuotaMeshServiceServer;
use servo_proto::v1::QuotaLimits;
use servo_proto::v1::quota_service_server::QuotaServiceServer;
use servo_service::expire_requests;
use servo_service::settings::Paging;
use servo_store::{DatabaseConfig, Store};

pub use config::{Defaults, Section};

use crate::loops::limits::{LimitsLoop, POLL_EVERY};
use crate::loops::usage::UsageLoop;
use crate::metrics::Metrics;
use crate::rpc::Quota;
use crate::store::requests;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    pub paging: Paging,
    #[serde(default)]
    pub quota: Section,
}

/// Serves the API until the process is stopped.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let defaults = defaults(mesh.config())?;
    let store = Store::connect(Service::Quota, &mesh.config().database)?;
    let quota = Quota::new(&store, &mesh, defaults)?;
    let metrics = Metrics::default();
    metrics.register(&mut mesh.metrics());
    let limits = Arc::new(LimitsLoop::new(
        &store,
        defaults,
        quota.snapshots.clone(),
        metrics,
    ));
    let usage = Arc::new(UsageLoop::new(&store));
    let doorbell = quota.doorbell.clone();
    let quota = Arc::new(quota);
    mesh.serve(QuotaServiceServer::from_arc(quota.clone()))
        .and(QuotaMeshServiceServer::from_arc(quota))
        .ready_when(store.readiness())
        .with_loop(
            "limits",
            Pace::every(POLL_EVERY).woken_by(&doorbell),
            move || {
                let limits = limits.clone();
                async move { limits.run_once().await }
            },
        )
        .with_loop(
            "usage",
            Pace::every(mesh.config().quota.count_every),
            move || {
                let usage = usage.clone();
                async move { usage.run_once().await }
            },
        )
        .with_loop(
            "expire",
            Pace::every(expire_requests::INTERVAL),
            move || expire_requests::run_once(store.clone(), requests::expire),
        )
        .until_signal()
        .await
}

fn defaults(config: &Config) -> Result<QuotaLimits, Fault> {
    let limits = config.quota.defaults.limits();
    core::limits::check(&limits, &QuotaLimits::default()).map_err(|bad| {
        Fault::config(
            format!("quota.defaults.{}", bad.field.trim_start_matches("limits.")),
            bad.sentence,
        )
    })?;
    Ok(limits)
}
