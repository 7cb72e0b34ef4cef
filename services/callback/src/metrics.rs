//! What workers report to this instance, for Prometheus.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use servo_proto::v1;

/// Checks that are shown by their names, of all tenants together.
const CHECKS_SHOWN_MAX: usize = 10_000;
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
    /// The checks that are shown by their names.
    shown: Arc<Mutex<HashSet<CheckLabels>>>,
    pub(crate) beats: Counter,
    pub(crate) beat_flush_seconds: Histogram,
    lines: Family<TenantLabels, Counter>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            reports: Family::default(),
            checks: Family::default(),
            shown: Arc::default(),
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
            "Starts and outcomes by what became of them",
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
        let help = "How long a flush of heartbeats took to be stored";
        registry.register(
            "callback_beat_flush_seconds",
            help,
            self.beat_flush_seconds.clone(),
        );
        registry.register(
            "callback_log_lines",
            "Lines of logs that were stored",
            self.lines.clone(),
        );
    }

    pub(crate) fn note_report(&self, kind: &'static str, acceptance: v1::Acceptance) {
        let answer = match acceptance {
            v1::Acceptance::Folded => "folded",
            v1::Acceptance::Recorded => "recorded",
            v1::Acceptance::Duplicate => "duplicate",
            v1::Acceptance::Late => "late",
            v1::Acceptance::Unspecified | v1::Acceptance::Refused => "refused",
        };
        self.reports
            .get_or_create(&ReportLabels { kind, answer })
            .inc();
    }

    pub(crate) fn note_checks(&self, tenant: &str, asset_key: &str, checks: &[v1::CheckResult]) {
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

    /// Workers choose names of checks and assets: those that come after too many others are counted together.
    fn within_bound(&self, labels: CheckLabels) -> CheckLabels {
        let mut shown = self
            .shown
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if shown.contains(&labels) {
            return labels;
        }
        if shown.len() < CHECKS_SHOWN_MAX {
            shown.insert(labels.clone());
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
    fn names_that_workers_choose_do_not_grow_without_end() {
        let metrics = Metrics::default();
        let check = |name: String| v1::CheckResult {
            name,
            ..Default::default()
        };
        let checks: Vec<_> = (0..2 * CHECKS_SHOWN_MAX)
            .map(|number| check(number.to_string()))
            .collect();
        metrics.note_checks("acme", "n/a", &checks);
        metrics.note_checks("acme", "n/a", &[check("0".to_owned())]);
        assert_eq!(metrics.shown.lock().unwrap().len(), CHECKS_SHOWN_MAX);
        let count = |asset_key: &str, check_name: &str| {
            let labels = CheckLabels {
                tenant_id: "acme".to_owned(),
                asset_key: asset_key.to_owned(),
                check_name: check_name.to_owned(),
                passed: "false".to_owned(),
            };
            metrics.checks.get_or_create(&labels).get()
        };
        assert_eq!(count("n/a", "0"), 2, "who is shown stays");
        assert_eq!(count(OTHER, OTHER), CHECKS_SHOWN_MAX as u64);
    }
}
