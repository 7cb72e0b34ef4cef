//! The callback service accepts what workers report: starts, heartbeats, logs and outcomes.
//!
//! - [`core`]: verifying signatures without a database, validating outcomes and commit markers.
//! - [`rpc`]: the API, one file per method; [`http`]: the same calls over plain HTTPS.
//! - [`forward`]: forwards starts and outcomes in batches to the holders of their runs' shards.
//! - [`heartbeats`], [`logs`]: actors that store heartbeats and log lines in batches (schema
//!   `callback`).
//! - [`commit_markers`]: finds the commit markers of outputs, without which no success with outputs
//!   counts.
//! - [`loops`]: recording that this instance is healthy, and retention. [`store`]: the SQL.
//!
//! **Stays absent:** decisions whether an attempt is lost. The scheduler makes them.

mod commit_markers;
mod config;
pub mod core;
mod forward;
mod heartbeats;
mod http;
mod logs;
mod loops;
mod metrics;
mod rpc;
mod store;

pub use config::{Config, Section};

use std::sync::Arc;

use servo_mesh::{Fault, Mesh, Pace, ServiceFuture};
use servo_model::Service;
use servo_proto::v1::callback_service_server::CallbackServiceServer;
use servo_service::settings::Attempts;
use servo_store::Store;
use tracing::info;

use crate::commit_markers::CommitMarkers;
use crate::core::SignatureVerifier;
use crate::forward::Forwarder;
use crate::heartbeats::Heartbeats;
use crate::logs::Logs;
use crate::loops::health::Health;
use crate::loops::sweep;
use crate::metrics::Metrics;
use crate::rpc::Callback;

/// Serves the API until the process drains.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let section = &mesh.config().callback;
    let store = Store::connect(Service::Callback, &mesh.config().database)?;
    let address = mesh.common().server.address(Service::Callback).to_string();
    let interval = mesh.config().attempts.heartbeat_interval;
    let health = Health::new(store.loops().clone(), &address, interval);
    let callback = callback(&mesh, &store, &health)?;
    let health_loop = health.clone();
    let (loops, logs_kept) = (store.loops().clone(), section.logs_kept);
    mesh.serve(CallbackServiceServer::new(callback.clone()))
        .with_public_port(
            section.http_address(),
            "callback.http_listen",
            http::handler(callback),
        )
        .ready_when(store.readiness())
        .with_loop("health", Pace::every(health.interval()), move || {
            let health = health_loop.clone();
            async move { health.run_once().await }
        })
        .with_loop("sweep", Pace::every(sweep::INTERVAL), move || {
            sweep::run_once(loops.clone(), logs_kept)
        })
        .until_signal()
        .await?;
    if let Err(error) = health.leave().await {
        info!(%error, "failed to remove this instance's health record; it expires");
    }
    Ok(())
}

fn callback(mesh: &Mesh<Config>, store: &Store, health: &Health) -> Result<Callback, Fault> {
    let attempts = &mesh.config().attempts;
    let metrics = Metrics::default();
    metrics.register(&mut mesh.metrics());
    Ok(Callback {
        signatures: Arc::new(signatures(attempts)?),
        forwarder: Forwarder::start(mesh, store),
        heartbeats: Heartbeats::start(store, health.clone(), metrics.clone()),
        logs: Logs::start(store),
        commit_markers: CommitMarkers::new(&attempts.output_base)
            .map_err(|error| Fault::config("attempts.output_base", error.to_string()))?,
        tokens: mesh.config().paging.tokens()?,
        store: store.clone(),
        metrics,
    })
}

fn signatures(attempts: &Attempts) -> Result<SignatureVerifier, Fault> {
    let (keys, grace) = (attempts.key_ring()?, attempts.grace()?);
    Ok(SignatureVerifier::new(
        keys,
        attempts.heartbeat_interval,
        grace,
    ))
}
