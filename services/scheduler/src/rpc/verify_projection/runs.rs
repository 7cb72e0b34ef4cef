//! Runs and their tasks, as lines to compare.

use serde_json::{Value, json};

use super::Lines;
use crate::core::{Cell, Run, Slot};

pub(super) fn run_lines(run: &Run) -> Lines {
    let counts: Vec<u32> = servo_model::states::TaskState::ALL
        .iter()
        .map(|state| run.counts().of(*state))
        .collect();
    let line = json!({
        "state": run.state.to_string(),
        "reason": run.reason.to_string(),
        "stopped_by": run.stopped_by.map(|by| format!("{by:?}")),
        "version": run.version,
        "changed_at": run.changed_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "error": run.error.as_ref().map(|(ordinal, error)| json!([ordinal, error])),
        "plan_id": run.graph.as_ref().map(|graph| servo_model::Digest::from_bytes(graph.plan_id).to_string()),
        "tasks": counts,
    });
    Lines::from([(
        json!({ "run_id": run.header.run_id.to_string() }).to_string(),
        line,
    )])
}

pub(super) fn task_lines(run: &Run) -> Lines {
    let run_id = run.header.run_id.to_string();
    let key = |slot: Slot| {
        json!({ "run_id": run_id, "ordinal": slot.ordinal, "item": slot.item }).to_string()
    };
    run.cells()
        .map(|(slot, cell)| (key(slot), task_line(cell)))
        .collect()
}

fn task_line(cell: &Cell) -> Value {
    json!({
        "state": cell.state.to_string(),
        "reason": cell.reason.to_string(),
        "attempt": cell.attempt,
        "failures": cell.failures,
        "attempt_id": cell.attempt_id.map(|id| id.to_string()),
        "cancelling": cell.cancelling,
        "pushed": cell.pushed,
        "session": cell.session,
        "worker": cell.worker.map(|id| servo_model::WorkerId::from_bytes(id).to_string()),
        "changed_at": cell.changed_at,
        "ready_at": cell.ready_at,
        "claimed_at": cell.claimed_at,
        "started_at": cell.started_at,
        "ended_at": cell.ended_at,
        "due_at": cell.due_at,
    })
}
