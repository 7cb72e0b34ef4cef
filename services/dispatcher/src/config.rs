//! The configuration of the dispatcher.

use std::time::Duration;

use serde::Deserialize;
use servo_service::settings::{Attempts, Paging};
use servo_store::DatabaseConfig;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub attempts: Attempts,
    pub database: DatabaseConfig,
    pub paging: Paging,
    #[serde(default)]
    pub dispatcher: Section,
}

/// The `[dispatcher]` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// Address at which workers and other instances reach this one. Default: `https://` and the
    /// listening address.
    pub address: Option<String>,
    /// How long the admission shards of a crashed instance stay without a holder.
    #[serde(deserialize_with = "servo_mesh::config::duration")]
    pub lease_ttl: Duration,
    /// Where workers send callbacks, if not to the address that their envelopes come from.
    pub callback_url: String,
    /// Memory for cached plans.
    #[serde(deserialize_with = "servo_mesh::config::size")]
    pub plan_cache: usize,
    /// Whether workers with the certificate `spiffe://servo/worker/-` serve every tenant.
    pub shared_workers: bool,
    pub push: Push,
}

/// The `[dispatcher.push]` section: workers that are pushed to instead of pulling.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Push {
    /// Addresses that pushes may go to: scheme and host, optionally a port and a path. Pushes are
    /// off when it is empty.
    pub targets: Vec<String>,
    /// Number of queues that envelopes are spread over. Must be equal in all instances.
    pub queues: u8,
    /// Pushes per queue and second.
    pub max_per_second: u32,
    /// Pushes per queue in flight.
    pub max_concurrent: u32,
}

impl Default for Push {
    fn default() -> Push {
        Push {
            targets: Vec::new(),
            queues: 1,
            max_per_second: 500,
            max_concurrent: 100,
        }
    }
}

impl Default for Section {
    fn default() -> Section {
        Section {
            address: None,
            lease_ttl: Duration::from_secs(5),
            callback_url: String::new(),
            plan_cache: 64 << 20,
            shared_workers: false,
            push: Push::default(),
        }
    }
}
