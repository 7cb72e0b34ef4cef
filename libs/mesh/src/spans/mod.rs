//! Spans for an OpenTelemetry collector, built only if `telemetry.otlp_endpoint` is set.
//!
//! Traces are Servo's own ([`TraceContext`]): a span gets its context from the call it serves, from
//! a traceparent that was stored with the work, or from the enclosing span. A [`layer`] tracks the
//! spans of `tracing`, a bounded queue receives the ended ones, and one task [`export`]s them in
//! batches. Code that creates spans never waits.

mod collector;
mod draft;
mod export;
mod filter;
mod layer;

use tonic::Code;
use tracing::{Span, dispatcher};
use tracing_subscriber::Registry;
use tracing_subscriber::registry::LookupSpan;

pub use export::Exporter;
pub(crate) use export::start;
pub(crate) use filter::LoggedOrExported;
pub(crate) use layer::SpanLayer;

use self::draft::Draft;
use crate::trace::TraceContext;

/// Makes `span` a child of the span that a W3C traceparent names. A malformed traceparent leaves it
/// unchanged.
pub fn continue_trace(span: &Span, traceparent: &str) {
    with_draft(span, |draft| {
        if let Some(parent) = TraceContext::parse(traceparent) {
            draft.set_context(parent.child(), Some(parent));
        }
    });
}

/// Sets the trace context of `span` and of its parent.
pub(crate) fn set_context(span: &Span, own: &TraceContext, caller: Option<TraceContext>) {
    with_draft(span, |draft| draft.set_context(own.clone(), caller));
}

/// Records the code and the end time of a call. The span itself may live longer, because spawned
/// tasks may keep it.
pub(crate) fn record_end(span: &Span, code: Code) {
    with_draft(span, |draft| draft.record_end(code));
}

/// Returns the innermost exported span of the current code.
pub(crate) fn current() -> Option<TraceContext> {
    dispatcher::get_default(|dispatch| {
        dispatch.downcast_ref::<SpanLayer>()?;
        let registry = dispatch.downcast_ref::<Registry>()?;
        let span = registry.span(dispatch.current_span().id()?)?;
        span.scope().find_map(|span| draft::context_of(&span))
    })
}

/// Does nothing, at the cost of one comparison, unless spans are exported and this is one of them.
fn with_draft(span: &Span, change: impl FnOnce(&mut Draft)) {
    span.with_subscriber(|(id, dispatch)| {
        dispatch.downcast_ref::<SpanLayer>()?;
        let span = dispatch.downcast_ref::<Registry>()?.span(id)?;
        span.extensions_mut().get_mut::<Draft>().map(change)
    });
}
