//! The callback takes what workers report: starts, heartbeats, logs, outcomes.
//!
//! It verifies signatures without a database ([`core`]), forwards starts and outcomes in batches to the holders of their
//! runs' shards ([`forward`]) and keeps heartbeats and logs (schema `callback`). A success with outputs counts once their
//! commit markers are found ([`outputs`]). The same calls come over gRPC ([`rpc`]) and over plain HTTPS ([`http`]).
//!
//! **Stays absent:** verdicts about liveness; the scheduler judges.

mod beats;
pub mod core;
mod forward;
mod health;
mod holders;
mod http;
mod logs;
mod metrics;
mod outputs;
mod rpc;
mod sweep;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use servo_mesh::config::SigningKeys;
use servo_mesh::{Fault, Mesh, Pace, PageTokens, ServiceFuture};
use servo_model::Service;
use servo_model::limits::{CLOCK_SKEW_MAX, HEARTBEAT_INTERVAL};
use servo_model::presign::SignatureGrace;
use servo_model::service::HTTP_PORT_OFFSET;
use servo_proto::v1::callback_service_server::CallbackServiceServer;
use servo_store::{DatabaseConfig, Store};

use crate::beats::Beats;
use crate::core::Door;
use crate::forward::Forward;
use crate::health::Health;
use crate::logs::Logs;
use crate::metrics::Metrics;
use crate::outputs::Outputs;
use crate::rpc::Callback;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    pub callback: Reports,
}

/// The `[callback]` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reports {
    /// The first signs, all of them verify; the dispatcher has the same.
    pub signing_keys: SigningKeys,
    /// Time from one beat of an attempt to the next.
    #[serde(
        default = "heartbeat_interval",
        deserialize_with = "servo_mesh::config::duration"
    )]
    pub heartbeat_interval: Duration,
    /// How late a signed call may be, and how far clocks may differ; the dispatcher has the same.
    #[serde(
        default = "signature_grace",
        deserialize_with = "servo_mesh::config::duration"
    )]
    pub signature_grace: Duration,
    /// Where presigned calls over plain HTTPS are taken. Defaults to loopback and the service's port + 200.
    #[serde(default, deserialize_with = "servo_mesh::config::address")]
    pub http_listen: Option<SocketAddr>,
    /// What output folders begin with, as the dispatcher has it; without it no outputs are accepted.
    #[serde(default)]
    pub output_base: String,
    /// How long lines of logs are kept.
    #[serde(
        default = "logs_kept",
        deserialize_with = "servo_mesh::config::duration"
    )]
    pub logs_kept: Duration,
}

impl Reports {
    fn http_address(&self) -> SocketAddr {
        let port = Service::Callback.default_port() + HTTP_PORT_OFFSET;
        self.http_listen
            .unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }
}

fn logs_kept() -> Duration {
    Duration::from_secs(30 * 24 * 3_600)
}

fn heartbeat_interval() -> Duration {
    HEARTBEAT_INTERVAL
}

fn signature_grace() -> Duration {
    CLOCK_SKEW_MAX
}

/// Serves the API until the process is told to stop.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    let mesh = Arc::new(mesh);
    let Config {
        database,
        callback: reports,
    } = mesh.config();
    let store = Store::connect(Service::Callback, database)?;
    let keys = reports
        .signing_keys
        .ring()
        .map_err(|error| Fault::config("callback.signing_keys", error))?;
    let grace = SignatureGrace::new(reports.signature_grace)
        .map_err(|error| Fault::config("callback.signature_grace", error))?;
    let outputs = Outputs::new(&reports.output_base)
        .map_err(|error| Fault::config("callback.output_base", error.to_string()))?;
    let metrics = Metrics::default();
    metrics.register(&mut mesh.metrics());
    let address = mesh.common().server.address(Service::Callback).to_string();
    let health = Health::new(store.loops().clone(), &address, reports.heartbeat_interval);
    let callback = Callback {
        door: Arc::new(Door::new(keys, reports.heartbeat_interval, grace)),
        forward: Forward::start(mesh.clone(), &store),
        beats: Beats::start(&store, health.clone(), metrics.clone()),
        logs: Logs::start(&store),
        outputs,
        tokens: PageTokens::new(
            reports
                .signing_keys
                .current()
                .map_or(&[], |(_, secret)| secret),
        ),
        store: store.clone(),
        metrics,
    };
    let (noting, loops, logs_kept) = (health.clone(), store.loops().clone(), reports.logs_kept);
    mesh.serve(CallbackServiceServer::new(callback.clone()))
        .with_public_port(
            reports.http_address(),
            "callback.http_listen",
            http::handler(callback),
        )
        .ready_when(store.readiness())
        .with_loop("health", Pace::every(health.every()), move || {
            let health = noting.clone();
            async move { health.note().await }
        })
        .with_loop("sweep", Pace::every(sweep::EVERY), move || {
            sweep::sweep(loops.clone(), logs_kept)
        })
        .until_signal()
        .await?;
    if let Err(error) = health.leave().await {
        tracing::info!(%error, "the note about this instance stays until others give it up");
    }
    Ok(())
}
