//! Metrics of what workers report.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use servo_proto::v1 as pb;

/// Checks that have a time series of their own, over all tenants.
const CHECK_SERIES_MAX: usize = 10_000;
const OTHER: &str = "other";
const FLUSH_SECONDS: [f64; 8] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 1.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReportLabels {
    kind: &'static str,
    answer: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabels {
    tenant_id: String,
    asset_key: String,
    check_name: String,
    passed: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TenantLabels {
    tenant_id: String,
}

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    reports: Family<ReportLabels, Counter>,
    checks: Family<CheckLabels, Counter>,
    /// The checks that have a time series of their own.
    series: Arc<Mutex<HashSet<CheckLabels>>>,
    pub(crate) beats: Counter,
    pub(crate) beat_flush_seconds: Histogram,
    lines: Family<TenantLabels, Counter>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            reports: Family::default(),
            checks: Family::default(),
            series: Arc::default(),
            beats: Counter::default(),
            beat_flush_seconds: Histogram::new(FLUSH_SECONDS),
            lines: Family::default(),
        }
    }
}

impl Metrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "callback_reports",
            "Starts and outcomes by verdict",
            self.reports.clone(),
        );
        registry.register(
            "check",
            "Quality checks that workers ran",
            self.checks.clone(),
        );
        registry.register(
            "callback_beats",
            "Heartbeats that were stored",
            self.beats.clone(),
        );
        let help = "Time to store a batch of heartbeats";
        registry.register(
            "callback_beat_flush_seconds",
            help,
            self.beat_flush_seconds.clone(),
        );
        registry.register(
            "callback_log_lines",
            "Log lines that were stored",
            self.lines.clone(),
        );
    }

    pub(crate) fn note_report(&self, kind: &'static str, acceptance: pb::Acceptance) {
        let answer = match acceptance {
            pb::Acceptance::Folded => "folded",
            pb::Acceptance::Recorded => "recorded",
            pb::Acceptance::Duplicate => "duplicate",
            pb::Acceptance::Late => "late",
            pb::Acceptance::Unspecified | pb::Acceptance::Refused => "refused",
        };
        self.reports
            .get_or_create(&ReportLabels { kind, answer })
            .inc();
    }

    pub(crate) fn note_checks(&self, tenant: &str, asset_key: &str, checks: &[pb::CheckResult]) {
        for check in checks {
            let labels = self.within_bound(CheckLabels {
                tenant_id: tenant.to_owned(),
                asset_key: asset_key.to_owned(),
                check_name: check.name.clone(),
                passed: check.passed.to_string(),
            });
            self.checks.get_or_create(&labels).inc();
        }
    }

    /// Counts checks under `other` once there are too many names, because workers choose the names.
    fn within_bound(&self, labels: CheckLabels) -> CheckLabels {
        let mut series = self
            .series
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if series.contains(&labels) {
            return labels;
        }
        if series.len() < CHECK_SERIES_MAX {
            series.insert(labels.clone());
            return labels;
        }
        CheckLabels {
            asset_key: OTHER.to_owned(),
            check_name: OTHER.to_owned(),
            ..labels
        }
    }

    pub(crate) fn note_lines(&self, tenant: &str, lines: usize) {
        let labels = TenantLabels {
            tenant_id: tenant.to_owned(),
        };
        self.lines.get_or_create(&labels).inc_by(lines as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_check_series_is_bounded() {
        let metrics = Metrics::default();
        let check = |name: String| pb::CheckResult {
            name,
            ..Default::default()
        };
        let checks: Vec<_> = (0..2 * CHECK_SERIES_MAX)
            .map(|number| check(number.to_string()))
            .collect();
        metrics.note_checks("acme", "n/a", &checks);
        metrics.note_checks("acme", "n/a", &[check("0".to_owned())]);
        assert_eq!(metrics.series.lock().unwrap().len(), CHECK_SERIES_MAX);
        let count = |asset_key: &str, check_name: &str| {
            let labels = CheckLabels {
                tenant_id: "acme".to_owned(),
                asset_key: asset_key.to_owned(),
                check_name: check_name.to_owned(),
                passed: "false".to_owned(),
            };
            metrics.checks.get_or_create(&labels).get()
        };
        assert_eq!(count("n/a", "0"), 2, "a known series stays");
        assert_eq!(count(OTHER, OTHER), CHECK_SERIES_MAX as u64);
    }
}
