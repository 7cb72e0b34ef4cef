//! What a handler's task knows about the call it serves, so that calls it makes in turn inherit the deadline
//! and the trace without every function passing them along. A spawned task starts without them.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::trace::TraceContext;

#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) deadline: Option<Instant>,
    pub(crate) trace: TraceContext,
}

tokio::task_local! {
    static SCOPE: Scope;
}

impl Scope {
    pub(crate) fn run<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        SCOPE.scope(self, future)
    }
}

/// The time left until the deadline of the call being served.
pub fn time_left() -> Option<Duration> {
    let deadline = SCOPE.try_with(|scope| scope.deadline).ok().flatten()?;
    Some(deadline.saturating_duration_since(Instant::now()))
}

/// The trace of the call being served.
pub fn current_trace() -> Option<TraceContext> {
    SCOPE.try_with(|scope| scope.trace.clone()).ok()
}
