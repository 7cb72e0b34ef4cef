//! The deadline and trace of the call that a task serves. Calls that a handler makes inherit them
//! without passing them through every function; a spawned task starts without them.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::trace::TraceContext;

#[derive(Debug, Clone)]
pub(crate) struct CallContext {
    pub(crate) deadline: Option<Instant>,
    pub(crate) trace: TraceContext,
}

tokio::task_local! {
    static CONTEXT: CallContext;
}

impl CallContext {
    pub(crate) fn run<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CONTEXT.scope(self, future)
    }
}

/// Returns the time left until the deadline of the call being served.
pub fn time_left() -> Option<Duration> {
    let deadline = CONTEXT
        .try_with(|context| context.deadline)
        .ok()
        .flatten()?;
    Some(deadline.saturating_duration_since(Instant::now()))
}

/// Returns the trace of the call being served.
pub fn current_trace() -> Option<TraceContext> {
    CONTEXT.try_with(|context| context.trace.clone()).ok()
}
