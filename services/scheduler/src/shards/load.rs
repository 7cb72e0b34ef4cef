//! Restoring runs from their rows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prost::Message;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{LoopStore, StoreError};

use crate::core::{Plan, Run};
use crate::plans::Plans;
use crate::store::plans::PlanLocation;
use crate::store::runs::StoredRun;
use crate::store::tasks::{self, StoredTask};
use crate::wire;

/// How many runs' tasks are read at once.
const RUNS_PER_READ_MAX: usize = 256;

/// Restores these runs with their tasks and plans.
///
/// A run that cannot be read is left out and logged; its events are refused, and the other runs
/// continue.
pub(crate) async fn restore(
    loops: &LoopStore,
    plans: &Plans,
    rows: Vec<StoredRun>,
) -> Result<Vec<Run>, StoreError> {
    plans
        .load(loops, rows.iter().filter_map(plan_location).collect())
        .await?;
    let mut runs = Vec::with_capacity(rows.len());
    for some in rows.chunks(RUNS_PER_READ_MAX) {
        let numbers: Vec<i64> = some.iter().map(|run| run.run_number).collect();
        let mut tasks_by_run: HashMap<i64, Vec<StoredTask>> = HashMap::new();
        for task in tasks::list_of_runs(loops, &numbers).await? {
            tasks_by_run.entry(task.run_number).or_default().push(task);
        }
        for row in some {
            let tasks = tasks_by_run.remove(&row.run_number).unwrap_or_default();
            match restore_one(row, &tasks, plans) {
                Ok(run) => runs.push(run),
                Err(fault) => {
                    tracing::error!(run = %row.run_id, fault, "failed to restore a run; it waits")
                }
            }
        }
    }
    Ok(runs)
}

fn plan_location(row: &StoredRun) -> Option<PlanLocation> {
    Some(PlanLocation {
        plan_id: row.plan_id()?,
        tenant: row.tenant.clone(),
        workspace: row.workspace.clone(),
    })
}

fn restore_one(row: &StoredRun, tasks: &[StoredTask], plans: &Plans) -> Result<Run, String> {
    let (body, trace) = wire::body_of(&row.request).map_err(|error| error.to_string())?;
    let Body::RunRequested(requested) = body else {
        return Err("its request is another event".to_owned());
    };
    let header = wire::header(
        &row.tenant,
        &row.workspace,
        row.run_number,
        &requested,
        trace.as_ref(),
        row.created_at,
    )
    .map_err(|error| error.to_string())?;
    let mut run = Run::requested(header);
    (run.state, run.reason) = row.states().ok_or("its state is unknown to this version")?;
    run.stopped_by = row.stopped_by();
    run.version = u64::try_from(row.version).unwrap_or(0);
    run.changed_at = row.changed_at;
    run.started_at = row.started_at;
    run.ended_at = row.ended_at;
    run.error = row
        .error
        .clone()
        .map(|error| (row.error_ordinal.map_or(0, i32::unsigned_abs), error));
    let Some(plan_id) = row.plan_id() else {
        return Ok(run);
    };
    let plan = plans
        .get(&plan_id)
        .ok_or("its plan is missing or cannot be read")?;
    with_tasks(run, plan, tasks)
}

fn with_tasks(run: Run, plan: Arc<Plan>, tasks: &[StoredTask]) -> Result<Run, String> {
    let mut items = BTreeMap::new();
    let mut task_rows = Vec::with_capacity(tasks.len());
    for task in tasks {
        let task_ref = task.task_ref();
        if task_ref.ordinal as usize >= plan.tasks.len() {
            return Err(format!("task {} is not in its plan", task_ref.ordinal));
        }
        if let Some(encoded) = &task.items {
            let mapped =
                pb::MappedItems::decode(encoded.as_slice()).map_err(|error| error.to_string())?;
            items.insert(
                task_ref.ordinal,
                (wire::item_count(&mapped), Arc::from(encoded.as_slice())),
            );
        }
        task_rows.push((
            task_ref,
            task.task_row()
                .ok_or("the state of a task is unknown to this version")?,
        ));
    }
    Ok(run.restore(plan, task_rows, items))
}
