//! ListTasks: the tasks of a run in plan order.

use servo_mesh::Error;
use servo_mesh::filter::Filter;
use servo_proto::v1 as pb;

use super::Scheduler;
use super::support::{errors, pages, parse, wait};
use crate::reads::filters;
use crate::reads::{runs, tasks};
use crate::store::tasks as store;
use crate::store::tasks::TaskRecord;
use crate::wire;

/// How many rows a page examines when its filter excludes most of them.
const EXAMINED_MAX: usize = 5_000;

pub(super) async fn list_tasks(
    scheduler: &Scheduler,
    request: pb::ListTasksRequest,
) -> Result<pb::ListTasksResponse, Error> {
    let tenant = parse::tenant(&request.tenant)?;
    let filter = Filter::parse(&request.filter, &filters::TASKS)?;
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let size = pages::size(request.page_size)?;
    let list = [
        "tasks",
        &request.tenant,
        &request.workspace,
        &request.run_id,
        &request.filter,
    ];
    let cursor = tasks::cursor(&scheduler.tokens, &list, &request.page_token)?;
    let reads = &scheduler.reads;
    let mut tx = reads
        .store
        .requests()
        .begin(&tenant)
        .await
        .map_err(errors::store)?;
    let run = runs::find_record(&mut tx, &request.workspace, &request.run_id).await?;
    let plan = runs::find_plan(reads, &tenant, &request.workspace, &run).await?;
    let Some(plan) = plan else {
        return Ok(pb::ListTasksResponse::default());
    };
    let mapped = tasks::count_mapped(&mut tx, &run, &plan).await?;
    let examined = if filter.is_all() { size } else { EXAMINED_MAX };
    let rows = store::list(&mut tx, run.run_number, cursor, examined + 1)
        .await
        .map_err(errors::store)?;
    tx.commit().await.map_err(errors::store)?;
    let mut shown = Vec::new();
    let mut last = None;
    for row in rows.iter().take(examined) {
        if shown.len() == size {
            break;
        }
        last = Some(cursor_of(row));
        let task = wire::task_to_proto(&request.run_id, row, &plan, &mapped);
        shown.extend(task.filter(|task| filter.matches(task)));
    }
    let next = last.filter(|last| Some(last) != rows.last().map(cursor_of).as_ref());
    Ok(pb::ListTasksResponse {
        tasks: shown,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

fn cursor_of(row: &TaskRecord) -> String {
    format!("{}.{}", row.task.ordinal, row.task.item)
}
