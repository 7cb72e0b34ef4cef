//! From rows to runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prost::Message;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{LoopStore, StoreError, Timestamp};

use crate::core::{Plan, Run, StoppedBy};
use crate::plans::{PlanLocation, Plans};
use crate::store::{StoredRun, StoredTask, tasks_of};
use crate::wire;

const PRINCIPAL: i16 = 1;
const TIME: i16 = 2;

/// How many runs' tasks are read at once.
const RUNS_PER_READ_MAX: usize = 256;

/// The number under which a row keeps who stopped the run.
pub(super) const fn stopped_by_code(by: StoppedBy) -> i16 {
    match by {
        StoppedBy::Principal => PRINCIPAL,
        StoppedBy::Time => TIME,
    }
}

/// Rebuilds these runs with their tasks and plans. What cannot be read stays out, with a line in the log: its events
/// are refused, everything else goes on.
pub(crate) async fn restore(
    loops: &LoopStore,
    plans: &Plans,
    rows: Vec<StoredRun>,
) -> Result<Vec<Run>, StoreError> {
    plans
        .load(loops, rows.iter().filter_map(plan_of).collect())
        .await?;
    let mut runs = Vec::with_capacity(rows.len());
    for some in rows.chunks(RUNS_PER_READ_MAX) {
        let numbers: Vec<i64> = some.iter().map(|run| run.run_number).collect();
        let mut tasks: HashMap<i64, Vec<StoredTask>> = HashMap::new();
        for task in tasks_of(loops, &numbers).await? {
            tasks.entry(task.run_number).or_default().push(task);
        }
        for row in some {
            let tasks = tasks.remove(&row.run_number).unwrap_or_default();
            match restore_one(row, &tasks, plans) {
                Ok(run) => runs.push(run),
                Err(fault) => {
                    tracing::error!(run = %row.run_id, fault, "a run cannot be read and waits")
                }
            }
        }
    }
    Ok(runs)
}

fn plan_of(row: &StoredRun) -> Option<PlanLocation> {
    let plan_id = row.plan_id.as_deref()?.try_into().ok()?;
    Some(PlanLocation {
        plan_id,
        tenant: row.tenant.clone(),
        workspace: row.workspace.clone(),
    })
}

fn restore_one(row: &StoredRun, tasks: &[StoredTask], plans: &Plans) -> Result<Run, String> {
    let (body, trace) = wire::body_of(&row.request).map_err(|error| error.to_string())?;
    let Body::RunRequested(requested) = body else {
        return Err("its request is another event".to_owned());
    };
    let at = row.created_at.unix_us();
    let header = wire::header(
        &row.tenant,
        &row.workspace,
        row.run_number,
        &requested,
        trace.as_ref(),
        at,
    )
    .map_err(|error| error.to_string())?;
    let mut run = Run::requested(header);
    (run.state, run.reason) = row
        .states()
        .ok_or("it is in a state that this version does not know")?;
    run.stopped_by = match row.stopped_by {
        Some(TIME) => Some(StoppedBy::Time),
        Some(_) => Some(StoppedBy::Principal),
        None => None,
    };
    run.version = u64::try_from(row.version).unwrap_or(0);
    run.changed_at = row.changed_at.unix_us();
    run.started_at = row.started_at.map(Timestamp::unix_us);
    run.ended_at = row.ended_at.map(Timestamp::unix_us);
    run.error = row
        .error
        .clone()
        .map(|error| (row.error_ordinal.map_or(0, i32::unsigned_abs), error));
    let Some(plan) = plan_of(row) else {
        return Ok(run);
    };
    let plan = plans
        .get(&plan.plan_id)
        .ok_or("its plan is missing or cannot be read")?;
    with_tasks(run, plan, tasks)
}

fn with_tasks(run: Run, plan: Arc<Plan>, tasks: &[StoredTask]) -> Result<Run, String> {
    let mut items = BTreeMap::new();
    let mut task_rows = Vec::with_capacity(tasks.len());
    for task in tasks {
        let task_ref = task.task_ref();
        if task_ref.ordinal as usize >= plan.tasks.len() {
            return Err(format!("task {} is beyond its plan", task_ref.ordinal));
        }
        if let Some(encoded) = &task.items {
            let named =
                pb::MappedItems::decode(encoded.as_slice()).map_err(|error| error.to_string())?;
            items.insert(
                task_ref.ordinal,
                (wire::item_count(&named), Arc::from(encoded.as_slice())),
            );
        }
        task_rows.push((
            task_ref,
            task.task_row()
                .ok_or("a task is in a state that this version does not know")?,
        ));
    }
    Ok(run.restore(plan, task_rows, items))
}
