//! Runs and tasks.

use serde_json::{Value, json};
use servo_model::{TaskRef, Timestamp};

use super::Rows;
use crate::core::{Run, TaskRow};

pub(super) fn run_rows(run: &Run) -> Rows {
    let counts: Vec<u32> = servo_model::states::TaskState::ALL
        .iter()
        .map(|state| run.counts().of(*state))
        .collect();
    let line = json!({
        "state": run.state.to_string(),
        "reason": run.reason.to_string(),
        "stopped_by": run.stopped_by.map(|by| format!("{by:?}")),
        "version": run.version,
        "changed_at": run.changed_at.unix_us(),
        "started_at": run.started_at.map(Timestamp::unix_us),
        "ended_at": run.ended_at.map(Timestamp::unix_us),
        "error": run.error.as_ref().map(|(ordinal, error)| json!([ordinal, error])),
        "plan_id": run.plan.as_ref().map(|plan| servo_model::Digest::from_bytes(plan.plan_id).to_string()),
        "tasks": counts,
    });
    Rows::from([(
        json!({ "run_id": run.header.run_id.to_string() }).to_string(),
        line,
    )])
}

pub(super) fn task_rows(run: &Run) -> Rows {
    let run_id = run.header.run_id.to_string();
    let key = |task_ref: TaskRef| {
        json!({ "run_id": run_id, "ordinal": task_ref.ordinal, "item": task_ref.map_index })
            .to_string()
    };
    run.task_rows()
        .map(|(task_ref, task_row)| (key(task_ref), task_line(task_row)))
        .collect()
}

fn task_line(task_row: &TaskRow) -> Value {
    json!({
        "state": task_row.state.to_string(),
        "reason": task_row.reason.to_string(),
        "attempt": task_row.attempt,
        "failures": task_row.failures,
        "attempt_id": task_row.attempt_id.map(|id| id.to_string()),
        "cancelling": task_row.cancelling,
        "pushed": task_row.pushed,
        "session": task_row.session,
        "worker": task_row.worker.map(|id| servo_model::WorkerId::from_bytes(id).to_string()),
        "changed_at": task_row.changed_at.unix_us(),
        "ready_at": task_row.first_ready_at.map(Timestamp::unix_us),
        "claimed_at": task_row.claimed_at.map(Timestamp::unix_us),
        "started_at": task_row.started_at.map(Timestamp::unix_us),
        "ended_at": task_row.ended_at.map(Timestamp::unix_us),
        "due_at": task_row.due_at.map(Timestamp::unix_us),
    })
}
