//! The Prometheus metrics of every service, and the registry to which a service adds its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use servo_model::Service;
use tonic::Code;

use crate::dropped_spans::dropped;

/// From 0.2 ms, a call on loopback, to the longest deadlines.
const SECONDS: [f64; 14] = [
    0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0,
];

#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Arc<Mutex<Registry>>,
    requests: Family<CallLabels, Counter>,
    durations: Family<MethodLabels, Histogram>,
    in_flight: Gauge,
    pub(crate) shed: Family<ShedLabels, Counter>,
    pub(crate) loop_passes: Family<LoopLabels, Counter>,
    certificate_expiry: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    method: &'static str,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabels {
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ShedLabels {
    pub(crate) limit: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct LoopLabels {
    pub(crate) name: &'static str,
    pub(crate) outcome: &'static str,
}

impl Metrics {
    pub(crate) fn new(service: Service) -> Metrics {
        let metrics = Metrics {
            registry: Arc::new(Mutex::new(Registry::with_prefix("servo"))),
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            in_flight: Gauge::default(),
            shed: Family::default(),
            loop_passes: Family::default(),
            certificate_expiry: Gauge::default(),
        };
        metrics.register(service);
        metrics
    }

    /// The registry; all names begin with `servo_`.
    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to measure a call. Dropping the meter unfinished counts the call as cancelled.
    pub(crate) fn begin(&self, method: &'static str) -> Meter {
        self.in_flight.inc();
        Meter {
            metrics: self.clone(),
            method,
            begun: Instant::now(),
            code: Code::Cancelled,
        }
    }

    pub(crate) fn encode(&self, certificate_expiry: i64) -> Result<String, std::fmt::Error> {
        self.certificate_expiry.set(certificate_expiry);
        let mut text = String::new();
        text::encode(&mut text, &self.registry())?;
        Ok(text)
    }

    fn register(&self, service: Service) {
        let build = Info::new(vec![
            ("service", service.name()),
            ("version", env!("CARGO_PKG_VERSION")),
        ]);
        let mut registry = self.registry();
        registry.register("build", "The running release", build);
        registry.register("rpc_requests", "Calls answered", self.requests.clone());
        registry.register(
            "rpc_duration_seconds",
            "From a call's arrival to its last byte",
            self.durations.clone(),
        );
        registry.register("rpc_in_flight", "Calls in flight", self.in_flight.clone());
        registry.register(
            "rpc_shed",
            "Calls and connections refused because of a limit",
            self.shed.clone(),
        );
        registry.register(
            "loop_passes",
            "Passes of background loops",
            self.loop_passes.clone(),
        );
        let help = "Spans that did not reach the collector";
        registry.register("telemetry_spans_dropped", help, dropped(service).clone());
        let help = "Expiry of the certificate in use, in seconds since 1970";
        registry.register(
            "tls_certificate_expiry_seconds",
            help,
            self.certificate_expiry.clone(),
        );
    }
}

/// One call being measured.
pub(crate) struct Meter {
    metrics: Metrics,
    method: &'static str,
    begun: Instant,
    code: Code,
}

impl Meter {
    pub(crate) fn finish(mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        let labels = CallLabels {
            method: self.method,
            code: code_name(self.code),
        };
        self.metrics.requests.get_or_create(&labels).inc();
        let duration = self.metrics.durations.get_or_create(&MethodLabels {
            method: self.method,
        });
        duration.observe(self.begun.elapsed().as_secs_f64());
        self.metrics.in_flight.dec();
    }
}

pub(crate) const fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
