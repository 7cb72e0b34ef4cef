//! The deadline and trace of the call that a task serves. Calls that a handler makes inherit them
//! without passing them through every function; a spawned task starts without them.

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

/// Returns the time left until the deadline of the call being served.
pub fn time_left() -> Option<Duration> {
    let deadline = SCOPE.try_with(|scope| scope.deadline).ok().flatten()?;
    Some(deadline.saturating_duration_since(Instant::now()))
}

/// Returns the trace of the call being served.
pub fn current_trace() -> Option<TraceContext> {
    SCOPE.try_with(|scope| scope.trace.clone()).ok()
}
