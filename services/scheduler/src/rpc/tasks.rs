//! ListTasks and GetTask: a run's tasks as their rows tell them, and one of them with its history.

use servo_mesh::paging::{PageTokens, page_size};
use servo_mesh::{Error, Reason};
use servo_model::TaskId;
use servo_proto::v1;
use servo_store::{TenantTx, query};

use super::{Scheduler, answer, get_run, story};
use crate::core::{Graph, Slot};
use crate::wire::{self, RunRow, TaskRow};

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
    let size = page_size(asked.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = ["tasks", &asked.tenant, &asked.workspace, &asked.run_id];
    let (ordinal, item) = after(&scheduler.tokens, &list, &asked.page_token)?;
    let mut tx = scheduler.store.requests().begin(&asked.tenant).await.map_err(answer::store)?;
    let run = get_run::row(&mut tx, &asked.workspace, &asked.run_id).await?;
    let select = query(include_str!("../store/list_tasks.sql"))
        .bind(run.run_number)
        .bind(ordinal)
        .bind(item)
        .bind(size as i64 + 1);
    let mut rows: Vec<TaskRow> = tx.all(select).await.map_err(answer::store)?;
    tx.commit().await.map_err(answer::store)?;
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| more).map(|row| format!("{}.{}", row.task.ordinal, row.task.item));
    let graph = get_run::graph(scheduler, &asked.tenant, &asked.workspace, &run).await?;
    let Some(graph) = graph else { return Ok(v1::ListTasksResponse::default()) };
    Ok(v1::ListTasksResponse {
        tasks: rows.iter().filter_map(|row| wire::task_to_proto(&asked.run_id, row, &graph)).collect(),
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

pub(super) async fn get_task(
    scheduler: &Scheduler,
    asked: v1::GetTaskRequest,
) -> Result<v1::GetTaskResponse, Error> {
    let missing = || answer::task_not_found(&asked.run_id, &asked.task_id);
    let mut tx = scheduler.store.requests().begin(&asked.tenant).await.map_err(answer::store)?;
    let run = get_run::row(&mut tx, &asked.workspace, &asked.run_id).await?;
    let graph =
        get_run::graph(scheduler, &asked.tenant, &asked.workspace, &run).await?.ok_or_else(missing)?;
    let (slot, row) = find(&mut tx, &run, &graph, &asked.task_id).await?.ok_or_else(missing)?;
    let told = story::read(&mut tx, &run, Some(&graph), Some(slot)).await?;
    tx.commit().await.map_err(answer::store)?;
    let task = wire::task_to_proto(&asked.run_id, &row, &graph);
    Ok(v1::GetTaskResponse { task, attempts: told.attempts, history: told.task })
}

/// One task of a run.
pub(super) async fn find(
    tx: &mut TenantTx,
    run: &RunRow,
    graph: &Graph,
    task_id: &str,
) -> Result<Option<(Slot, TaskRow)>, Error> {
    let counts = query(include_str!("../store/children.sql")).bind(run.run_number);
    let children: Vec<(i32, i64)> = tx.all(counts).await.map_err(answer::store)?;
    let Some(slot) = slot_of(graph, &children, task_id) else { return Ok(None) };
    let select = query(include_str!("../store/task.sql"))
        .bind(run.run_number)
        .bind(slot.ordinal.cast_signed())
        .bind(slot.item.map_or(-1, u32::cast_signed));
    let row: Option<TaskRow> = tx.optional(select).await.map_err(answer::store)?;
    Ok(row.map(|row| (slot, row)))
}

/// Task ids are derived from keys, so the plan is looked through; children only where a task has some.
pub(super) fn slot_of(graph: &Graph, children: &[(i32, i64)], task_id: &str) -> Option<Slot> {
    let wanted: TaskId = task_id.parse().ok()?;
    let planned = (0u32..).zip(&graph.tasks).find(|(_, task)| task.key.id() == wanted);
    if let Some((ordinal, _)) = planned {
        return Some(Slot::planned(ordinal));
    }
    children.iter().find_map(|(parent, count)| {
        let parent = parent.unsigned_abs();
        let items = 0..u32::try_from(*count).unwrap_or(0);
        items.map(|item| Slot::child(parent, item)).find(|slot| wire::task_key(graph, *slot).id() == wanted)
    })
}

fn after(tokens: &PageTokens, list: &[&str], token: &str) -> Result<(i32, i32), Error> {
    let Some(place) = tokens.read(list, token)? else { return Ok((-1, -1)) };
    let parsed =
        place.split_once('.').and_then(|(ordinal, item)| Some((ordinal.parse().ok()?, item.parse().ok()?)));
    parsed.ok_or_else(|| {
        Error::new(Reason::InvalidPageToken, "page_token is not one that ListTasks gave; begin anew")
    })
}
