//! How many spans never reached the collector.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use prometheus_client::metrics::counter::Counter;
use servo_model::Service;

/// By service, since one process may hold several and each tells of its own. Global as the subscriber is.
static DROPPED: LazyLock<BTreeMap<Service, Counter>> = LazyLock::new(|| {
    Service::ALL
        .into_iter()
        .map(|service| (service, Counter::default()))
        .collect()
});

pub(crate) fn dropped(service: Service) -> &'static Counter {
    &DROPPED[&service]
}
