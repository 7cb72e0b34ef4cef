//! The configuration of the callback service.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::Deserialize;
use servo_model::Service;
use servo_model::service::HTTP_PORT_OFFSET;
use servo_service::settings::{Attempts, Paging};
use servo_store::DatabaseConfig;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub attempts: Attempts,
    pub database: DatabaseConfig,
    pub paging: Paging,
    #[serde(default)]
    pub callback: Section,
}

/// The `[callback]` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// Where presigned calls over plain HTTPS are accepted. Default: loopback and the service's
    /// port + 200.
    #[serde(deserialize_with = "servo_mesh::config::address")]
    pub http_listen: Option<SocketAddr>,
    /// How long log lines are kept.
    #[serde(deserialize_with = "servo_mesh::config::duration")]
    pub logs_kept: Duration,
}

impl Section {
    pub(crate) fn http_address(&self) -> SocketAddr {
        let port = Service::Callback.default_port() + HTTP_PORT_OFFSET;
        self.http_listen
            .unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }
}

impl Default for Section {
    fn default() -> Section {
        Section {
            http_listen: None,
            logs_kept: Duration::from_secs(30 * 24 * 3_600),
        }
    }
}
