//! The quota is the authority on limits, usage and cost.
//!
//! It owns quotas, pools, prices and budgets (schema `quota`) and streams the effective limits to those who enforce
//! them. Which limit holds is decided in [`core::limits`]; every change of a setting takes the path of
//! `rpc/change.rs`: the tenant's lock, the row, the event and the answer in one transaction.
//!
//! What is used of limits is known to those who enforce them; they are asked when somebody reads it (`rpc/used.rs`).
//!
//! **Stays absent:** being asked on the hot path.

mod config;
mod core;
mod loops;
mod metrics;
mod rpc;
mod store;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use servo_mesh::{Fault, Mesh, Pace, ServiceFuture};
use servo_model::Service;
use servo_proto::v1::QuotaLimits;
use servo_proto::v1::quota_service_server::QuotaServiceServer;
use servo_store::{DatabaseConfig, Store};

pub use config::{Defaults, Section};

use crate::loops::limits::{LOOK_EVERY, LimitsLoop};
use crate::loops::usage::UsageLoop;
use crate::metrics::Metrics;
use crate::rpc::Quota;

const EXPIRE_EVERY: Duration = Duration::from_secs(600);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    #[serde(default)]
    pub quota: Section,
}

/// Serves the API until the process is told to stop.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let defaults = defaults(mesh.config())?;
    let store = Store::connect(Service::Quota, &mesh.config().database)?;
    let quota = Quota::new(&store, &mesh, defaults);
    let metrics = Metrics::default();
    metrics.register(&mut mesh.metrics());
    let limits = Arc::new(LimitsLoop::new(
        &store,
        defaults,
        quota.board.clone(),
        metrics,
    ));
    let usage = Arc::new(UsageLoop::new(&store));
    let bell = quota.bell.clone();
    mesh.serve(QuotaServiceServer::new(quota))
        .ready_when(store.readiness())
        .with_loop(
            "limits",
            Pace::every(LOOK_EVERY).woken_by(&bell),
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
        .with_loop("expire", Pace::every(EXPIRE_EVERY), move || {
            loops::expire_requests(store.clone())
        })
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
