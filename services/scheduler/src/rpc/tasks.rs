//! ListTasks: a run's tasks in the plan's order.

use servo_mesh::{Error, Reason};
use servo_proto::v1;
use servo_store::query;

use super::{Scheduler, answer, get_run};
use crate::wire::{self, TaskRow};

const PAGE_DEFAULT: i32 = 20;
const PAGE_MAX: i32 = 100;

pub(super) async fn list_tasks(
    scheduler: &Scheduler,
    asked: v1::ListTasksRequest,
) -> Result<v1::ListTasksResponse, Error> {
    if !asked.filter.is_empty() {
        return Err(Error::new(
            Reason::InvalidFilter,
            "filters over tasks are not supported yet; leave filter empty",
        ));
    }
    let size = match asked.page_size {
        0 => PAGE_DEFAULT,
        size if size < 0 => return Err(Error::bad_field("page_size", "is negative")),
        size => size.min(PAGE_MAX),
    };
    let (ordinal, item) = after(&asked.page_token)?;
    let mut tx = scheduler.store.requests().begin(&asked.tenant).await.map_err(answer::store)?;
    let run = get_run::row(&mut tx, &asked.workspace, &asked.run_id).await?;
    let select = query(include_str!("../store/list_tasks.sql"))
        .bind(run.run_number)
        .bind(ordinal)
        .bind(item)
        .bind(i64::from(size) + 1);
    let mut rows: Vec<TaskRow> = tx.all(select).await.map_err(answer::store)?;
    tx.commit().await.map_err(answer::store)?;
    let more = rows.len() > size as usize;
    rows.truncate(size as usize);
    let next = rows.last().filter(|_| more).map(|row| format!("{}.{}", row.task.ordinal, row.task.item));
    let Some(plan_id) = run.plan_id.as_deref().and_then(|id| <[u8; 32]>::try_from(id).ok()) else {
        return Ok(v1::ListTasksResponse::default());
    };
    let graph = scheduler.plans.find(scheduler.store.loops(), &asked.tenant, &asked.workspace, plan_id).await;
    let missing = || Error::new(Reason::PlanNotFound, "the run's plan is no longer stored");
    let graph = graph.map_err(answer::store)?.ok_or_else(missing)?;
    Ok(v1::ListTasksResponse {
        tasks: rows.iter().filter_map(|row| wire::task_to_proto(&asked.run_id, row, &graph)).collect(),
        next_page_token: next.unwrap_or_default(),
    })
}

fn after(token: &str) -> Result<(i32, i32), Error> {
    if token.is_empty() {
        return Ok((-1, -1));
    }
    let parsed =
        token.split_once('.').and_then(|(ordinal, item)| Some((ordinal.parse().ok()?, item.parse().ok()?)));
    parsed.ok_or_else(|| {
        Error::new(Reason::InvalidPageToken, "page_token is not one that ListTasks gave; begin anew")
    })
}
