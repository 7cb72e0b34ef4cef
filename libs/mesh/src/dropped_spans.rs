//! Counts the spans that never reached the collector.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use prometheus_client::metrics::counter::Counter;
use servo_model::Service;

/// One counter per service, because one process may run several and each reports its own. Global,
/// because the subscriber is.
static DROPPED: LazyLock<BTreeMap<Service, Counter>> = LazyLock::new(|| {
    Service::ALL
        .into_iter()
        .map(|service| (service, Counter::default()))
        .collect()
});

pub(crate) fn dropped(service: Service) -> &'static Counter {
    &DROPPED[&service]
}
