//! Restoring runs from their rows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prost::Message;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{LoopStore, StoreError};

use crate::core::{Plan, Run};
use crate::plans::{LoadedPlans, Plans};
use crate::store::plans::PlanLocation;
use crate::store::runs::StoredRun;
use crate::store::tasks::{self, StoredTask};
use crate::wire;

/// How many runs' tasks are read at once.
const RUNS_PER_READ_MAX: usize = 256;

/// Runs restored from their rows, and those that could not be.
#[derive(Debug, Default)]
pub(crate) struct RestoredRuns {
    pub(crate) runs: Vec<Run>,
    pub(super) failed: Vec<(StoredRun, RestoreError)>,
}

/// Why a run cannot be restored.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum RestoreError {
    #[error("{0} is unknown to this version")]
    NewerVersion(&'static str),
    #[error("{0}")]
    Broken(String),
}

impl RestoreError {
    fn broken(fault: impl ToString) -> RestoreError {
        RestoreError::Broken(fault.to_string())
    }
}

/// Restores these runs with their tasks and plans.
pub(crate) async fn restore(
    loops: &LoopStore,
    plans: &Plans,
    rows: Vec<StoredRun>,
) -> Result<RestoredRuns, StoreError> {
    let plans = plans
        .load(loops, rows.iter().filter_map(plan_location).collect())
        .await?;
    let mut restored = RestoredRuns::default();
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let some: Vec<StoredRun> = rows.by_ref().take(RUNS_PER_READ_MAX).collect();
        let numbers: Vec<i64> = some.iter().map(|run| run.run_number).collect();
        let mut tasks_by_run: HashMap<i64, Vec<StoredTask>> = HashMap::new();
        for task in tasks::list_of_runs(loops, &numbers).await? {
            tasks_by_run.entry(task.run_number).or_default().push(task);
        }
        for row in some {
            let tasks = tasks_by_run.remove(&row.run_number).unwrap_or_default();
            match restore_one(&row, &tasks, &plans) {
                Ok(run) => restored.runs.push(run),
                Err(error) => restored.failed.push((row, error)),
            }
        }
    }
    Ok(restored)
}

fn plan_location(row: &StoredRun) -> Option<PlanLocation> {
    Some(PlanLocation {
        plan_id: row.plan_id()?,
        tenant: row.tenant.clone(),
        workspace: row.workspace.clone(),
    })
}

fn restore_one(
    row: &StoredRun,
    tasks: &[StoredTask],
    plans: &LoadedPlans,
) -> Result<Run, RestoreError> {
    let (body, trace) = wire::body_of(&row.request).map_err(RestoreError::broken)?;
    let Body::RunRequested(requested) = body else {
        return Err(RestoreError::broken("the request is another event"));
    };
    let header = wire::header(
        &row.tenant,
        &row.workspace,
        row.run_number,
        &requested,
        trace.as_ref(),
        row.created_at,
    )
    .map_err(RestoreError::broken)?;
    let mut run = Run::requested(header);
    (run.state, run.reason) = row
        .states()
        .ok_or(RestoreError::NewerVersion("the state of the run"))?;
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
        .ok_or_else(|| RestoreError::broken("the plan is missing or cannot be read"))?;
    with_tasks(run, plan.clone(), tasks)
}

fn with_tasks(run: Run, plan: Arc<Plan>, tasks: &[StoredTask]) -> Result<Run, RestoreError> {
    let mut items = BTreeMap::new();
    let mut task_rows = Vec::with_capacity(tasks.len());
    for task in tasks {
        let task_ref = task.task_ref();
        if task_ref.ordinal as usize >= plan.tasks.len() {
            let fault = format!("task {} is not in the plan", task_ref.ordinal);
            return Err(RestoreError::Broken(fault));
        }
        if let Some(encoded) = &task.items {
            let mapped =
                pb::MappedItems::decode(encoded.as_slice()).map_err(RestoreError::broken)?;
            items.insert(
                task_ref.ordinal,
                (wire::item_count(&mapped), Arc::from(encoded.as_slice())),
            );
        }
        task_rows.push((
            task_ref,
            task.task_row()
                .ok_or(RestoreError::NewerVersion("the state of a task"))?,
        ));
    }
    Ok(run.restore(plan, task_rows, items))
}
