//! A span that is still open, in its exported form.

use std::fmt::Debug;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use servo_model::Service;
use tonic::Code;
use tracing::Metadata;
use tracing::field::{Field, Visit};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::metrics::code_name;
use crate::trace::TraceContext;

/// The name of the span of a call; only such a span has the kind `Server`.
pub(super) const RPC: &str = "rpc";

pub(super) struct Draft {
    name: &'static str,
    service: Service,
    context: TraceContext,
    parent: Option<TraceContext>,
    began_at: SystemTime,
    began: Instant,
    took: Option<Duration>,
    attributes: Vec<KeyValue>,
    status: Option<Status>,
}

/// Returns the span's trace context.
pub(super) fn context_of<'a, R: LookupSpan<'a>>(span: &SpanRef<'a, R>) -> Option<TraceContext> {
    span.extensions()
        .get::<Draft>()
        .map(|draft| draft.context.clone())
}

impl Draft {
    /// Begins a span now, below `parent`; without one it is the first span of a new trace.
    #[expect(
        clippy::disallowed_methods,
        reason = "traces have nanoseconds, which a Timestamp has not"
    )]
    pub(super) fn new(
        metadata: &'static Metadata<'static>,
        default_service: Service,
        parent: Option<TraceContext>,
    ) -> Draft {
        Draft {
            name: metadata.name(),
            service: service_of(metadata.target()).unwrap_or(default_service),
            context: parent
                .as_ref()
                .map_or_else(TraceContext::root, TraceContext::child),
            parent,
            began_at: SystemTime::now(),
            began: Instant::now(),
            took: None,
            attributes: Vec::new(),
            status: None,
        }
    }

    pub(super) fn set_context(&mut self, own: TraceContext, parent: Option<TraceContext>) {
        self.context = own;
        self.parent = parent;
    }

    pub(super) fn record_end(&mut self, code: Code) {
        self.took = Some(self.began.elapsed());
        self.attribute("code", Value::StringValue(code_name(code).to_owned()));
        if is_server_error(code) {
            self.status = Some(Status {
                code: StatusCode::Error.into(),
                message: String::new(),
            });
        }
    }

    pub(super) fn is_sampled(&self) -> bool {
        self.context.is_sampled()
    }

    /// Ends the span now, unless its end was already recorded.
    pub(super) fn end(self) -> (Service, Span) {
        let began = self.began_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let ended = began + self.took.unwrap_or_else(|| self.began.elapsed());
        let kind = if self.name == RPC {
            SpanKind::Server
        } else {
            SpanKind::Internal
        };
        let span = Span {
            trace_id: self.context.trace_id_bytes().to_vec(),
            span_id: self.context.span_id_bytes().to_vec(),
            trace_state: self.context.state().to_owned(),
            parent_span_id: self
                .parent
                .map(|parent| parent.span_id_bytes().to_vec())
                .unwrap_or_default(),
            flags: self.context.flags().into(),
            name: self.name.to_owned(),
            kind: kind.into(),
            start_time_unix_nano: nanoseconds(began),
            end_time_unix_nano: nanoseconds(ended),
            attributes: self.attributes,
            status: self.status,
            ..Default::default()
        };
        (self.service, span)
    }

    fn attribute(&mut self, key: &str, value: Value) {
        self.attributes.push(attribute(key, value));
    }
}

pub(super) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..Default::default()
    }
}

impl Visit for Draft {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            // Already part of the resource and of the span itself.
            "service" => self.service = value.parse().unwrap_or(self.service),
            "trace_id" | "span_id" => {}
            name => self.attribute(name, Value::StringValue(value.to_owned())),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.attribute(field.name(), Value::IntValue(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.attribute(
            field.name(),
            Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)),
        );
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.attribute(field.name(), Value::BoolValue(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.attribute(field.name(), Value::DoubleValue(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// A service's crate is named after the service, which identifies its spans when several services
/// share a process.
fn service_of(target: &str) -> Option<Service> {
    target
        .split("::")
        .next()?
        .strip_prefix("servo_")?
        .parse()
        .ok()
}

/// The codes that OpenTelemetry counts as server errors; the others are the caller's errors.
fn is_server_error(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

fn nanoseconds(since_1970: Duration) -> u64 {
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
}
