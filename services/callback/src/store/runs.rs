//! Runs, tasks and plans, which the scheduler and the planner write.

use servo_model::{RunId, TenantId};
use servo_store::{StoreError, TenantTx, query};
use uuid::Uuid;

/// Number of the run, id of its plan, and whether it has ended.
pub(crate) type RunRow = (i64, Option<Vec<u8>>, bool);

/// Ordinal, item (-1 for none), number of attempts, last attempt and state of a task.
pub(crate) type TaskAttemptsRow = (i32, i32, i32, Option<Uuid>, i16);

pub(crate) async fn find_run(
    tx: &mut TenantTx,
    run: &RunId,
    workspace: &str,
) -> Result<Option<RunRow>, StoreError> {
    let select = query(include_str!("find_run.sql"))
        .bind(Uuid::from_bytes(*run.as_bytes()))
        .bind(workspace);
    tx.optional(select).await
}

/// Returns the encoded plan.
pub(crate) async fn read_plan(
    tx: &mut TenantTx,
    tenant: &TenantId,
    workspace: &str,
    plan_id: Vec<u8>,
) -> Result<Option<Vec<u8>>, StoreError> {
    let select = query(include_str!("read_plan.sql"))
        .bind(tenant)
        .bind(workspace)
        .bind(plan_id);
    let plan: Option<(Vec<u8>,)> = tx.optional(select).await?;
    Ok(plan.map(|(plan,)| plan))
}

/// Returns the tasks of a run that have had attempts.
pub(crate) async fn task_attempts(
    tx: &mut TenantTx,
    run_number: i64,
) -> Result<Vec<TaskAttemptsRow>, StoreError> {
    tx.all(query(include_str!("task_attempts.sql")).bind(run_number))
        .await
}
