//! Tasks of a run.

use servo_mesh::Error;
use servo_mesh::paging::PageTokens;
use servo_model::{TaskId, TaskRef};
use servo_store::TenantTx;

use super::errors;
use crate::core::Plan;
use crate::store::runs::RunRecord;
use crate::store::tasks::{self, TaskCursor, TaskRecord};

/// Counts the mapped tasks of each mapped parent. Most plans have no mapped task.
pub(crate) async fn count_mapped(
    tx: &mut TenantTx,
    run: &RunRecord,
    plan: &Plan,
) -> Result<Vec<(i32, i64)>, Error> {
    if plan.tasks.iter().all(|task| task.mapped_over.is_none()) {
        return Ok(Vec::new());
    }
    tasks::count_mapped(tx, run.run_number)
        .await
        .map_err(errors::store)
}

/// Finds a task of a run by its id.
pub(crate) async fn find(
    tx: &mut TenantTx,
    run: &RunRecord,
    plan: &Plan,
    task_id: &str,
) -> Result<Option<(TaskRef, TaskRecord)>, Error> {
    let mapped = count_mapped(tx, run, plan).await?;
    let Some(task_ref) = task_ref_of(plan, &mapped, task_id) else {
        return Ok(None);
    };
    let record = tasks::find(tx, run.run_number, task_ref)
        .await
        .map_err(errors::store)?;
    Ok(record.map(|record| (task_ref, record)))
}

/// Searches the plan for a task id, because task ids are derived from task keys. Mapped tasks are
/// searched last.
pub(crate) fn task_ref_of(plan: &Plan, mapped: &[(i32, i64)], task_id: &str) -> Option<TaskRef> {
    let id: TaskId = task_id.parse().ok()?;
    let planned = (0u32..)
        .zip(&plan.tasks)
        .find(|(_, task)| task.key.id() == id);
    if let Some((ordinal, _)) = planned {
        return Some(TaskRef::planned(ordinal));
    }
    mapped.iter().find_map(|(parent, count)| {
        let parent = parent.unsigned_abs();
        let indexes = 0..u32::try_from(*count).unwrap_or(0);
        indexes
            .map(|index| TaskRef::mapped(parent, index))
            .find(|task_ref| plan.task_key(*task_ref).id() == id)
    })
}

/// The task after which a page begins.
pub(crate) fn cursor(tokens: &PageTokens, list: &[&str], token: &str) -> Result<TaskCursor, Error> {
    let Some(cursor) = tokens.read(list, token)? else {
        return Ok((-1, -1));
    };
    let parsed = cursor
        .split_once('.')
        .and_then(|(ordinal, item)| Some((ordinal.parse().ok()?, item.parse().ok()?)));
    parsed.ok_or_else(|| errors::bad_page_token("this list"))
}
