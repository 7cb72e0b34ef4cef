//! Spans for an OpenTelemetry collector, built only where `telemetry.otlp_endpoint` is set.
//!
//! Traces are Servo's own ([`TraceContext`]): a span gets its place in one from the call it serves, from a traceparent
//! that came along with the work, or from the span around it. A [`layer`] follows the spans of `tracing`, a bounded
//! queue takes those that ended, and one task [`export`]s them in batches. Nobody who makes a span ever waits.

mod collector;
mod draft;
mod dropped;
mod export;
mod filter;
mod layer;

use tonic::Code;
use tracing::{Span, dispatcher};
use tracing_subscriber::Registry;
use tracing_subscriber::registry::LookupSpan;

pub(crate) use collector::collector_uri;
pub(crate) use dropped::dropped;
pub use export::Exporter;
pub(crate) use export::start;
pub(crate) use filter::LoggedOrExported;
pub(crate) use layer::SpanLayer;

use self::draft::Draft;
use crate::trace::TraceContext;

/// Puts `span` below the one that a W3C traceparent names; one that cannot be read leaves it where it is.
pub fn continue_trace(span: &Span, traceparent: &str) {
    with_draft(span, |draft| {
        if let Some(parent) = TraceContext::parse(traceparent) {
            draft.place(parent.child(), Some(parent));
        }
    });
}

/// Says which one of its trace `span` is, and which one called.
pub(crate) fn place(span: &Span, own: &TraceContext, caller: Option<TraceContext>) {
    with_draft(span, |draft| draft.place(own.clone(), caller));
}

/// Says how a call ended, and that it did: what it left behind may keep the span itself for longer.
pub(crate) fn answered(span: &Span, code: Code) {
    with_draft(span, |draft| draft.answered(code));
}

/// The innermost exported span that this code runs in.
pub(crate) fn current() -> Option<TraceContext> {
    dispatcher::get_default(|dispatch| {
        dispatch.downcast_ref::<SpanLayer>()?;
        let registry = dispatch.downcast_ref::<Registry>()?;
        let span = registry.span(dispatch.current_span().id()?)?;
        span.scope().find_map(|span| draft::context_of(&span))
    })
}

/// Does nothing, at the cost of a comparison, unless spans are exported and this is one of them.
fn with_draft(span: &Span, change: impl FnOnce(&mut Draft)) {
    span.with_subscriber(|(id, dispatch)| {
        dispatch.downcast_ref::<SpanLayer>()?;
        let span = dispatch.downcast_ref::<Registry>()?.span(id)?;
        span.extensions_mut().get_mut::<Draft>().map(change)
    });
}
