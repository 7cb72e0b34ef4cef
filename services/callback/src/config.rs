//! The configuration of the callback service.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::Deserialize;
use servo_mesh::config::SigningKeys;
use servo_model::Service;
use servo_model::limits::{CLOCK_SKEW_MAX, HEARTBEAT_INTERVAL};
use servo_model::service::HTTP_PORT_OFFSET;
use servo_service::settings::Paging;
use servo_store::DatabaseConfig;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    pub paging: Paging,
    pub callback: Section,
}

/// The `[callback]` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// The first key signs, all of them verify. The dispatcher has the same keys.
    pub signing_keys: SigningKeys,
    /// Time between two heartbeats of an attempt.
    #[serde(
        default = "heartbeat_interval",
        deserialize_with = "servo_mesh::config::duration"
    )]
    pub heartbeat_interval: Duration,
    /// How late a signed call may arrive, and how far clocks may differ. The dispatcher has the
    /// same value.
    #[serde(
        default = "signature_grace",
        deserialize_with = "servo_mesh::config::duration"
    )]
    pub signature_grace: Duration,
    /// Where presigned calls over plain HTTPS are accepted. Default: loopback and the service's
    /// port + 200.
    #[serde(default, deserialize_with = "servo_mesh::config::address")]
    pub http_listen: Option<SocketAddr>,
    /// Prefix of all output folders, equal to the dispatcher's. No outputs are accepted without it.
    #[serde(default)]
    pub output_base: String,
    /// How long log lines are kept.
    #[serde(
        default = "logs_kept",
        deserialize_with = "servo_mesh::config::duration"
    )]
    pub logs_kept: Duration,
}

impl Section {
    pub(crate) fn http_address(&self) -> SocketAddr {
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
