//! Metrics of admission.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use servo_queue::QueueCounts;

use crate::core::TenantLoad;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DepthLabels {
    tenant_id: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QuotaLabels {
    tenant_id: String,
    quota_type: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EntryLabels {
    queue: String,
    state: &'static str,
}

/// Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics {
    depth: Family<DepthLabels, Gauge>,
    quota: Family<QuotaLabels, Gauge<f64, AtomicU64>>,
    entries: Family<EntryLabels, Gauge>,
    workers: Gauge,
    shards: Gauge,
    pub(crate) claimed: Counter,
    pub(crate) refused: Counter,
}

impl Metrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "queue_depth",
            "Ready tasks and live attempts",
            self.depth.clone(),
        );
        registry.register(
            "quota_usage_ratio",
            "Used part of a limit",
            self.quota.clone(),
        );
        let help = "Envelopes that wait in the push queue or are being pushed";
        registry.register("push_queue_entries", help, self.entries.clone());
        registry.register(
            "dispatcher_workers",
            "Workers that this instance serves",
            self.workers.clone(),
        );
        registry.register(
            "dispatcher_shards_held",
            "Admission shards that this instance holds",
            self.shards.clone(),
        );
        registry.register(
            "dispatcher_claims",
            "Tasks that were claimed",
            self.claimed.clone(),
        );
        registry.register(
            "dispatcher_claims_refused",
            "Claims that schedulers refused",
            self.refused.clone(),
        );
    }

    /// Replaces all values, so that tenants without load disappear.
    pub(crate) fn set_loads(&self, loads: &[TenantLoad], workers: usize, shards: usize) {
        self.workers.set(i64::try_from(workers).unwrap_or(i64::MAX));
        self.shards.set(i64::try_from(shards).unwrap_or(i64::MAX));
        self.depth.clear();
        self.quota.clear();
        for TenantLoad {
            tenant,
            ready,
            live,
            used,
        } in loads
        {
            for (state, count) in [("READY", ready), ("LIVE", live)] {
                let labels = DepthLabels {
                    tenant_id: tenant.to_string(),
                    state,
                };
                self.depth.get_or_create(&labels).set(i64::from(*count));
            }
            for (name, share) in used {
                let labels = QuotaLabels {
                    tenant_id: tenant.to_string(),
                    quota_type: name.clone(),
                };
                self.quota.get_or_create(&labels).set(*share);
            }
        }
    }

    pub(crate) fn set_queues(&self, queues: &[QueueCounts]) {
        for counts in queues {
            for (state, count) in [("WAITING", counts.waiting), ("PUSHING", counts.pushing)] {
                let labels = EntryLabels {
                    queue: counts.queue.clone(),
                    state,
                };
                self.entries.get_or_create(&labels).set(count);
            }
        }
    }
}
