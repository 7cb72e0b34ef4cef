//! The nine services of the mesh with their fixed names, identities and ports.

use std::fmt;
use std::str::FromStr;

/// Every certificate identity starts with this.
pub const TRUST_DOMAIN: &str = "spiffe://servo/";

/// Metrics are served on the service's port plus this.
pub const METRICS_PORT_OFFSET: u16 = 100;

/// Endpoints that are open to clients without a certificate are served on the service's port plus
/// this.
pub const HTTP_PORT_OFFSET: u16 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    Gateway,
    Planner,
    Scheduler,
    Dispatcher,
    Callback,
    Backfill,
    Automation,
    Quota,
    Console,
}

impl Service {
    pub const ALL: [Service; 9] = [
        Service::Gateway,
        Service::Planner,
        Service::Scheduler,
        Service::Dispatcher,
        Service::Callback,
        Service::Backfill,
        Service::Automation,
        Service::Quota,
        Service::Console,
    ];

    /// The name in configuration, certificates, schemas and roles.
    pub const fn name(self) -> &'static str {
        match self {
            Service::Gateway => "gateway",
            Service::Planner => "planner",
            Service::Scheduler => "scheduler",
            Service::Dispatcher => "dispatcher",
            Service::Callback => "callback",
            Service::Backfill => "backfill",
            Service::Automation => "automation",
            Service::Quota => "quota",
            Service::Console => "console",
        }
    }

    /// The port it listens on unless configured otherwise.
    pub const fn default_port(self) -> u16 {
        match self {
            Service::Gateway => 7400,
            Service::Planner => 7411,
            Service::Scheduler => 7412,
            Service::Dispatcher => 7413,
            Service::Callback => 7414,
            Service::Backfill => 7415,
            Service::Automation => 7416,
            Service::Quota => 7417,
            Service::Console => 7418,
        }
    }

    /// `spiffe://servo/<name>`, the URI in its certificate.
    pub fn spiffe_id(self) -> String {
        format!("{TRUST_DOMAIN}{}", self.name())
    }

    /// Whether it has its own tables. The console has none: it is a client like any other.
    pub const fn has_store(self) -> bool {
        !matches!(self, Service::Console)
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a service; the services are gateway, planner, scheduler, dispatcher, callback, backfill, automation, quota and console"
)]
pub struct UnknownService(pub String);

impl FromStr for Service {
    type Err = UnknownService;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Service::ALL
            .into_iter()
            .find(|s| s.name() == name)
            .ok_or_else(|| UnknownService(name.to_owned()))
    }
}
