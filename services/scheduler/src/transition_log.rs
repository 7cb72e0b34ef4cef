//! A log line for every transition. There are many, so they have level debug and cost nothing when
//! that is disabled.

use servo_mesh::continue_trace;
use servo_model::states::TaskState;
use tracing::{Level, debug, enabled, info_span};

use crate::core::{Changes, Run, TaskChange};

/// Logs the transitions of a run.
pub(crate) fn log(run: &Run, changes: &Changes) {
    if run.ended_at.is_some() && changes.run {
        finalized(run);
    }
    if !enabled!(Level::DEBUG) {
        return;
    }
    changes
        .history
        .iter()
        .for_each(|change| log_task(run, change));
    for (from, to, reason) in &changes.run_history {
        let (header, counts) = (&run.header, run.counts());
        let (trace_id, span_id) = trace(&header.traceparent);
        debug!(
            tenant_id = %header.tenant,
            workspace_id = %header.workspace,
            run_id = %header.run_id,
            from_state = from.map(|from| from.name()),
            to_state = to.name(),
            reason = reason.name(),
            tasks_succeeded = counts.of(TaskState::Succeeded),
            tasks_failed = counts.of(TaskState::Failed),
            trace_id,
            span_id,
            "run state transition"
        );
    }
}

/// The last span of a run's trace.
fn finalized(run: &Run) {
    let (header, counts) = (&run.header, run.counts());
    let span = info_span!(
        "servo.finalize_run",
        tenant_id = %header.tenant,
        run_id = %header.run_id,
        outcome = run.state.name(),
        tasks_succeeded = counts.of(TaskState::Succeeded),
        tasks_failed = counts.of(TaskState::Failed)
    );
    continue_trace(&span, &header.traceparent);
}

fn log_task(run: &Run, change: &TaskChange) {
    let Some(plan) = &run.plan else { return };
    let (header, key) = (&run.header, plan.task_key(change.task_ref));
    let (trace_id, span_id) = trace(&header.traceparent);
    debug!(
        tenant_id = %header.tenant,
        workspace_id = %header.workspace,
        run_id = %header.run_id,
        task_id = %key.id(),
        asset_key = &*plan.settings(change.task_ref.ordinal).asset_key,
        partition_key = &*plan.task(change.task_ref.ordinal).partition_key,
        attempt = change.attempt,
        from_state = change.from.name(),
        to_state = change.to.name(),
        reason = change.reason.name(),
        trace_id,
        span_id,
        "task state transition"
    );
}

/// Trace id and span id of a W3C traceparent; empty without one.
fn trace(traceparent: &str) -> (&str, &str) {
    let mut parts = traceparent.split('-').skip(1);
    (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_contains_trace_and_span() {
        assert_eq!(
            trace("00-0af7651916cd43dd-b7ad6b7169203331-01"),
            ("0af7651916cd43dd", "b7ad6b7169203331")
        );
        assert_eq!(trace(""), ("", ""));
    }
}
