//! Checks of the common sections that types cannot express: ranges, addresses, log filters.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use http::Uri;
use servo_model::Service;
use tracing_subscriber::EnvFilter;

use super::tree::Node;
use super::{Common, Peers, Tls};
use crate::fault::ConfigFault;

/// The decoder of every generated server rejects larger messages, so a higher limit would have no
/// effect.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(crate) fn common(common: &Common, tree: &Node) -> Vec<ConfigFault> {
    let mut check = Check {
        tree,
        faults: Vec::new(),
    };
    let server = &common.server;
    check.duration("server.grace", server.grace, "0s", ms(0)..=minutes(60));
    check.duration(
        "server.max_deadline",
        server.max_deadline,
        "1ms",
        ms(1)..=minutes(60),
    );
    check.duration(
        "server.handshake_timeout",
        server.handshake_timeout,
        "1ms",
        ms(1)..=minutes(1),
    );
    check.duration(
        "server.ready_every",
        server.ready_every,
        "1ms",
        ms(1)..=minutes(60),
    );
    check.range(
        "server.max_message",
        server.max_message,
        1024..=MESSAGE_BYTES_MAX,
        "1KiB to 4MiB",
    );
    check.range(
        "server.max_requests",
        server.max_requests,
        1..=1_000_000,
        "1 to 1000000",
    );
    check.range(
        "server.max_streams",
        server.max_streams,
        1..=1_000_000,
        "1 to 1000000",
    );
    check.range(
        "server.max_connections",
        server.max_connections,
        1..=100_000,
        "1 to 100000",
    );
    check.peers(&common.peers);
    check.filter(&common.telemetry.filter);
    check.collector(common.telemetry.otlp_endpoint.as_deref());
    check.faults
}

pub(crate) fn tls(tls: &Tls, tree: &Node) -> Vec<ConfigFault> {
    let mut check = Check {
        tree,
        faults: Vec::new(),
    };
    check.duration(
        "tls.reload_every",
        tls.reload_every,
        "1ms",
        ms(1)..=minutes(24 * 60),
    );
    check.faults
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

struct Check<'a> {
    tree: &'a Node,
    faults: Vec<ConfigFault>,
}

impl Check<'_> {
    fn peers(&mut self, peers: &Peers) {
        self.duration(
            "peers.connect_timeout",
            peers.connect_timeout,
            "1ms",
            ms(1)..=minutes(1),
        );
        self.duration("peers.deadline", peers.deadline, "1ms", ms(1)..=minutes(60));
        self.duration(
            "peers.keep_alive_every",
            peers.keep_alive_every,
            "1ms",
            ms(1)..=minutes(60),
        );
        self.duration(
            "peers.keep_alive_timeout",
            peers.keep_alive_timeout,
            "1ms",
            ms(1)..=minutes(60),
        );
        self.range("peers.max_retries", peers.max_retries, 0..=10, "0 to 10");
        for service in Service::ALL {
            self.peer_address(service, &peers.address(service));
        }
    }

    fn peer_address(&mut self, service: Service, address: &str) {
        if peer_uri(address).is_none() {
            let allowed =
                "https:// with a host and a port is allowed, such as `https://127.0.0.1:7412`";
            self.fault(&format!("peers.{service}"), format!("`{address}`"), allowed);
        }
    }

    fn filter(&mut self, filter: &str) {
        if let Err(error) = EnvFilter::builder().parse(filter) {
            let allowed = format!(
                "a level or target=level pairs are allowed, such as `info,servo_mesh=debug` ({error})"
            );
            self.fault("telemetry.filter", format!("`{filter}`"), &allowed);
        }
    }

    fn collector(&mut self, endpoint: Option<&str>) {
        if let Some(endpoint) = endpoint.filter(|endpoint| collector_uri(endpoint).is_none()) {
            let allowed = "the gRPC port of an OTLP collector is allowed, http:// or https:// with a host and a port, \
                such as `http://127.0.0.1:4317`";
            self.fault("telemetry.otlp_endpoint", format!("`{endpoint}`"), allowed);
        }
    }

    fn duration(
        &mut self,
        key: &str,
        value: Duration,
        least: &str,
        allowed: RangeInclusive<Duration>,
    ) {
        let most = allowed.end().as_secs() / 60;
        let words = format!("{least} to {most}m is allowed");
        if !allowed.contains(&value) {
            self.fault(key, format!("{value:?}"), &words);
        }
    }

    fn range<T: PartialOrd + Display>(
        &mut self,
        key: &str,
        value: T,
        allowed: RangeInclusive<T>,
        words: &str,
    ) {
        if !allowed.contains(&value) {
            self.fault(key, value.to_string(), &format!("{words} is allowed"));
        }
    }

    fn fault(&mut self, key: &str, found: String, allowed: &str) {
        let origin = self
            .tree
            .at(key)
            .map(|node| format!(" ({})", node.origin))
            .unwrap_or_default();
        let sentence = format!("found {found}{origin}, but {allowed}");
        self.faults.push(ConfigFault {
            key: key.to_owned(),
            sentence,
        });
    }
}

/// Parses a peer's address. `None` unless it is https with a host, a port and nothing else.
pub(crate) fn peer_uri(address: &str) -> Option<Uri> {
    let uri: Uri = address.parse().ok()?;
    let has_no_path = uri.path() == "/" && uri.query().is_none();
    (uri.scheme_str() == Some("https") && uri.port_u16().is_some() && has_no_path).then_some(uri)
}

/// Parses a collector's address. `None` unless it is http or https with a host, a port and nothing
/// else.
pub(crate) fn collector_uri(address: &str) -> Option<Uri> {
    let uri: Uri = address.parse().ok()?;
    let has_no_path = uri.path() == "/" && uri.query().is_none();
    let scheme = matches!(uri.scheme_str(), Some("http" | "https"));
    (scheme && uri.port_u16().is_some() && has_no_path).then_some(uri)
}
