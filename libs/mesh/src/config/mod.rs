//! Typed, layered configuration: defaults, the TOML file at `SERVO_CONFIG`, `SERVO_<SECTION>__<KEY>`.
//!
//! Four sections are the same for every service ([`Common`]); a service adds its own as a struct with
//! `#[serde(deny_unknown_fields)]`. All faults are found at once, each a sentence that names the key, where
//! its value came from and what is allowed.

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
use serde::de::DeserializeOwned;
use servo_model::Service;
use servo_model::service::METRICS_PORT_OFFSET;

pub use keys::{BadKeys, SigningKeys};
use read::Neighbours;
use tree::Node;
pub use tree::Sources;
pub use units::{address, duration, size};

use crate::fault::{ConfigFault, Fault};

const COMMON_SECTIONS: [&str; 4] = ["server", "tls", "peers", "telemetry"];
// One file may serve the whole mesh: a section that another service reads is not a typing mistake.
const SHARED_SECTIONS: [&str; 3] = ["attempts", "database", "paging"];

/// A service's configuration, read and found good: the common sections, its own, its certificates.
pub struct Settings<C> {
    pub service: Service,
    pub common: Common,
    pub own: C,
    pub tls: crate::tls::Tls,
}

/// For a service without sections of its own.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSections {}

/// The sections that every service has, beside `tls`.
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
    /// How long calls under way may take to finish once the process was told to stop.
    #[serde(deserialize_with = "duration")]
    pub grace: Duration,
    /// The longest deadline a call gets; a longer one is cut to this.
    #[serde(deserialize_with = "duration")]
    pub max_deadline: Duration,
    /// The largest single message.
    #[serde(deserialize_with = "size")]
    pub max_message: usize,
    /// Calls under way at once; more are refused with RESOURCE_EXHAUSTED.
    pub max_requests: u32,
    /// Open response streams at once.
    pub max_streams: u32,
    pub max_connections: u32,
    /// How long a client may take for its TLS handshake.
    #[serde(deserialize_with = "duration")]
    pub handshake_timeout: Duration,
    /// How often a service that is not ready looks whether it is; once it is, a fifth as often.
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

/// PEM files. All three are read again while the service runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The service's certificate, its chain after it.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authorities that vouch for the mesh.
    pub ca: PathBuf,
    /// How often the files are looked at.
    #[serde(default = "reload_every", deserialize_with = "duration")]
    pub reload_every: Duration,
}

fn reload_every() -> Duration {
    Duration::from_secs(10)
}

/// Where the other services are, and how they are called.
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
    /// The deadline of a call that neither sets one nor inherits one.
    #[serde(deserialize_with = "duration")]
    pub deadline: Duration,
    /// A silent connection is asked for a sign of life this often …
    #[serde(deserialize_with = "duration")]
    pub keep_alive_every: Duration,
    /// … and given up when none comes within this.
    #[serde(deserialize_with = "duration")]
    pub keep_alive_timeout: Duration,
    /// How often an idempotent call is repeated at most.
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
    /// The address of a service: what is configured, else loopback and its port.
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
    /// What is logged: a level, or `target=level` pairs (`info,servo_scheduler=debug`).
    pub filter: String,
    /// Where spans are exported to by OTLP over gRPC; nowhere unless set.
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

impl<C: DeserializeOwned> Settings<C> {
    /// Reads all layers and the certificates they name, or tells every fault.
    pub fn read(service: Service, sources: &Sources) -> Result<Settings<C>, Fault> {
        let tree = sources.tree().map_err(Fault::Config)?;
        let (common_part, own_part) = tree.split(&COMMON_SECTIONS);
        let (tls_part, common_part) = common_part.split(&["tls"]);
        let tls = read::read(&tls_part, &Neighbours::default())
            .and_then(|part| load(service, part, &tree));
        let common =
            read::read(&common_part, &Neighbours::default()).and_then(|part| checked(part, &tree));
        let neighbours = Neighbours {
            known: &COMMON_SECTIONS,
            ignored: &foreign_sections(service),
        };
        let own = read::read(&own_part, &neighbours);
        match (common, tls, own) {
            (Ok(common), Ok(tls), Ok(own)) => Ok(Settings {
                service,
                common,
                own,
                tls,
            }),
            (common, tls, own) => Err(all_of([common.err(), tls.err(), own.err()])),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsPart {
    tls: Tls,
}

fn load(service: Service, part: TlsPart, tree: &Node) -> Result<crate::tls::Tls, Vec<ConfigFault>> {
    let mut faults = check::tls(&part.tls, tree);
    match crate::tls::Tls::load(service, part.tls) {
        Ok(tls) if faults.is_empty() => Ok(tls),
        loaded => {
            faults.extend(loaded.err().into_iter().flatten());
            Err(faults)
        }
    }
}

fn checked(common: Common, tree: &Node) -> Result<Common, Vec<ConfigFault>> {
    let faults = check::common(&common, tree);
    if faults.is_empty() {
        Ok(common)
    } else {
        Err(faults)
    }
}

/// Sections that this service leaves to others. Its own are known to its type.
fn foreign_sections(service: Service) -> Vec<&'static str> {
    let others = Service::ALL
        .into_iter()
        .filter(|other| *other != service)
        .map(Service::name);
    others.chain(SHARED_SECTIONS).collect()
}

fn all_of<const N: usize>(faults: [Option<Vec<ConfigFault>>; N]) -> Fault {
    let mut all: Vec<ConfigFault> = faults.into_iter().flatten().flatten().collect();
    all.sort();
    Fault::Config(all)
}
