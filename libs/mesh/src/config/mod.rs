//! Typed, layered configuration: defaults, the TOML file at `SERVO_CONFIG`,
//! `SERVO_<SECTION>__<KEY>`.
//!
//! Four sections are the same for every service ([`Common`] and `tls`); a service adds its own
//! sections as a struct with `#[serde(deny_unknown_fields)]`. Reading reports all faults together,
//! each as a sentence that names the key, the origin of its value and the allowed values.

pub(crate) mod check;
mod deserialize;
mod keys;
mod read;
mod tree;
mod units;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use servo_model::Service;
use servo_model::service::METRICS_PORT_OFFSET;

pub(crate) use check::collector_uri;
pub use keys::{BadKeys, SigningKeys};
pub(crate) use read::{ForeignKeys, read};
pub(crate) use tree::Node;
pub use tree::Sources;
pub use units::{address, duration, size};

/// The configuration of a service without sections of its own.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSections {}

/// The sections that every service has, in addition to `tls`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Common {
    pub server: Server,
    pub peers: Peers,
    pub telemetry: Telemetry,
}

/// The listener and its limits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Defaults to loopback and the service's port.
    #[serde(deserialize_with = "units::address")]
    pub listen: Option<SocketAddr>,
    /// Metrics and probes over plain HTTP. Defaults to loopback and the service's port + 100.
    #[serde(deserialize_with = "units::address")]
    pub metrics_listen: Option<SocketAddr>,
    /// How long calls in flight may take to finish after a stop signal.
    #[serde(deserialize_with = "duration")]
    pub grace: Duration,
    /// The longest deadline a call gets; longer ones are reduced to this.
    #[serde(deserialize_with = "duration")]
    pub max_deadline: Duration,
    /// The largest single message.
    #[serde(deserialize_with = "size")]
    pub max_message: usize,
    /// Limit of calls in flight; further calls are refused with RESOURCE_EXHAUSTED.
    pub max_requests: u32,
    /// Limit of open response streams.
    pub max_streams: u32,
    pub max_connections: u32,
    /// How long a client may take for its TLS handshake.
    #[serde(deserialize_with = "duration")]
    pub handshake_timeout: Duration,
    /// How often a service that is not ready repeats its readiness check; once ready, it checks a
    /// fifth as often.
    #[serde(deserialize_with = "duration")]
    pub ready_every: Duration,
}

impl Server {
    pub fn address(&self, service: Service) -> SocketAddr {
        self.listen
            .unwrap_or_else(|| loopback(service.default_port()))
    }

    pub fn metrics_address(&self, service: Service) -> SocketAddr {
        self.metrics_listen
            .unwrap_or_else(|| loopback(service.default_port() + METRICS_PORT_OFFSET))
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

impl Default for Server {
    fn default() -> Server {
        Server {
            listen: None,
            metrics_listen: None,
            grace: Duration::from_secs(10),
            max_deadline: Duration::from_secs(60),
            max_message: 4 * 1024 * 1024,
            max_requests: 1024,
            max_streams: 4096,
            max_connections: 1024,
            handshake_timeout: Duration::from_secs(5),
            ready_every: Duration::from_secs(1),
        }
    }
}

/// PEM files. All three are reloaded while the service runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The service's certificate, followed by its chain.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The trusted certificate authorities of the mesh.
    pub ca: PathBuf,
    /// How often the files are checked for changes.
    #[serde(default = "reload_every", deserialize_with = "duration")]
    pub reload_every: Duration,
}

fn reload_every() -> Duration {
    Duration::from_secs(10)
}

/// The addresses of the other services and the settings for calling them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Peers {
    pub gateway: Option<String>,
    pub planner: Option<String>,
    pub scheduler: Option<String>,
    pub dispatcher: Option<String>,
    pub callback: Option<String>,
    pub backfill: Option<String>,
    pub automation: Option<String>,
    pub quota: Option<String>,
    pub console: Option<String>,
    #[serde(deserialize_with = "duration")]
    pub connect_timeout: Duration,
    /// The deadline of a call that has no deadline of its own and inherits none.
    #[serde(deserialize_with = "duration")]
    pub deadline: Duration,
    /// A ping is sent on an idle connection this often …
    #[serde(deserialize_with = "duration")]
    pub keep_alive_every: Duration,
    /// … and the connection is closed when no reply arrives within this time.
    #[serde(deserialize_with = "duration")]
    pub keep_alive_timeout: Duration,
    /// The maximum number of retries of an idempotent call.
    pub max_retries: u32,
}

impl Default for Peers {
    fn default() -> Peers {
        Peers {
            gateway: None,
            planner: None,
            scheduler: None,
            dispatcher: None,
            callback: None,
            backfill: None,
            automation: None,
            quota: None,
            console: None,
            connect_timeout: Duration::from_secs(2),
            deadline: Duration::from_secs(10),
            keep_alive_every: Duration::from_secs(2),
            keep_alive_timeout: Duration::from_secs(2),
            max_retries: 3,
        }
    }
}

impl Peers {
    /// Returns the configured address of a service, or loopback and its default port.
    pub fn address(&self, service: Service) -> String {
        let configured = self.configured(service).map(str::to_owned);
        configured.unwrap_or_else(|| format!("https://127.0.0.1:{}", service.default_port()))
    }

    fn configured(&self, service: Service) -> Option<&str> {
        let url = match service {
            Service::Gateway => &self.gateway,
            Service::Planner => &self.planner,
            Service::Scheduler => &self.scheduler,
            Service::Dispatcher => &self.dispatcher,
            Service::Callback => &self.callback,
            Service::Backfill => &self.backfill,
            Service::Automation => &self.automation,
            Service::Quota => &self.quota,
            Service::Console => &self.console,
        };
        url.as_deref()
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    pub format: LogFormat,
    /// The log filter: a level, or `target=level` pairs (`info,servo_scheduler=debug`).
    pub filter: String,
    /// The OTLP gRPC endpoint that receives spans; without it no spans are exported.
    pub otlp_endpoint: Option<String>,
}

impl Default for Telemetry {
    fn default() -> Telemetry {
        Telemetry {
            format: LogFormat::Json,
            filter: "info".to_owned(),
            otlp_endpoint: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Json,
    Pretty,
}
