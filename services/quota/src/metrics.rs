//! Prometheus metrics of this instance.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics {
    pub(crate) unsummed: Counter,
}

impl Metrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help =
            "Times that a budget was sent with its last known sum, because it could not be summed";
        registry.register("quota_budgets_unsummed", help, self.unsummed.clone());
    }
}
