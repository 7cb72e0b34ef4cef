//! What workers report to this instance, for Prometheus.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use servo_proto::v1;

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
    pub(crate) beats: Counter,
    pub(crate) beat_flush_seconds: Histogram,
    lines: Family<TenantLabels, Counter>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            reports: Family::default(),
            checks: Family::default(),
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
        registry.register("check", "Quality checks that workers ran", self.checks.clone());
        registry.register("callback_beats", "Heartbeats that were stored", self.beats.clone());
        let help = "How long a flush of heartbeats took to be stored";
        registry.register("callback_beat_flush_seconds", help, self.beat_flush_seconds.clone());
        registry.register("callback_log_lines", "Lines of logs that were stored", self.lines.clone());
    }

    pub(crate) fn note_report(&self, kind: &'static str, acceptance: v1::Acceptance) {
        let answer = match acceptance {
            v1::Acceptance::Folded => "folded",
            v1::Acceptance::Recorded => "recorded",
            v1::Acceptance::Duplicate => "duplicate",
            v1::Acceptance::Late => "late",
            v1::Acceptance::Unspecified | v1::Acceptance::Refused => "refused",
        };
        self.reports.get_or_create(&ReportLabels { kind, answer }).inc();
    }

    pub(crate) fn note_checks(&self, tenant: &str, asset_key: &str, checks: &[v1::CheckResult]) {
        for check in checks {
            let labels = CheckLabels {
                tenant_id: tenant.to_owned(),
                asset_key: asset_key.to_owned(),
                check_name: check.name.clone(),
                passed: check.passed.to_string(),
            };
            self.checks.get_or_create(&labels).inc();
        }
    }

    pub(crate) fn note_lines(&self, tenant: &str, lines: usize) {
        let labels = TenantLabels { tenant_id: tenant.to_owned() };
        self.lines.get_or_create(&labels).inc_by(lines as u64);
    }
}
