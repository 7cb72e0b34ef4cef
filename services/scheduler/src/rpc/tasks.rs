//! ListTasks and GetTask: a run's tasks as their rows tell them, and one of them with its history.

use servo_mesh::filter::{self, Term};
use servo_mesh::paging::{PageTokens, page_size};
use servo_mesh::{Error, Reason};
use servo_model::TaskId;
use servo_proto::v1;
use servo_store::{TenantTx, Timestamp, query};
use uuid::Uuid;

use super::{Scheduler, answer, get_run, story, wait};
use crate::core::{Graph, Slot};
use crate::wire::{self, RunRow, TaskRow};

const FIELDS: [&str; 6] = [
    "state",
    "asset_key",
    "partition_key",
    "operation",
    "pool",
    "reason",
];

/// How many rows are looked at for a page whose filter most of them do not fit.
const LOOKED_AT_MAX: usize = 5_000;

pub(super) async fn list_tasks(
    scheduler: &Scheduler,
    asked: v1::ListTasksRequest,
) -> Result<v1::ListTasksResponse, Error> {
    let terms = filter::parse(&asked.filter, &FIELDS)?;
    let conditions = terms
        .iter()
        .map(Condition::of)
        .collect::<Result<Vec<_>, _>>()?;
    wait::for_event(scheduler, &asked.wait_for_event_id).await?;
    let size = page_size(asked.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = [
        "tasks",
        &asked.tenant,
        &asked.workspace,
        &asked.run_id,
        &asked.filter,
    ];
    let (ordinal, item) = after(&scheduler.tokens, &list, &asked.page_token)?;
    let mut tx = scheduler
        .store
        .requests()
        .begin(&asked.tenant)
        .await
        .map_err(answer::store)?;
    let run = get_run::row(&mut tx, &asked.workspace, &asked.run_id).await?;
    let graph = get_run::graph(scheduler, &asked.tenant, &asked.workspace, &run).await?;
    let Some(graph) = graph else {
        return Ok(v1::ListTasksResponse::default());
    };
    let children = children(&mut tx, &run, &graph).await?;
    let looked_at = if conditions.is_empty() {
        size
    } else {
        LOOKED_AT_MAX
    };
    let select = query(include_str!("../store/list_tasks.sql"))
        .bind(run.run_number)
        .bind(ordinal)
        .bind(item)
        .bind(looked_at as i64 + 1);
    let rows: Vec<TaskRow> = tx.all(select).await.map_err(answer::store)?;
    tx.commit().await.map_err(answer::store)?;
    let mut page = Page {
        tasks: Vec::new(),
        last: None,
    };
    for row in rows.iter().take(looked_at) {
        if page.tasks.len() == size {
            break;
        }
        page.last = Some(format!("{}.{}", row.task.ordinal, row.task.item));
        let task = wire::task_to_proto(&asked.run_id, row, &graph, &children);
        page.tasks
            .extend(task.filter(|task| conditions.iter().all(|condition| condition.fits(task))));
    }
    let end = rows
        .last()
        .map(|row| format!("{}.{}", row.task.ordinal, row.task.item));
    let next = page.last.filter(|last| Some(last) != end.as_ref());
    Ok(v1::ListTasksResponse {
        tasks: page.tasks,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

struct Page {
    tasks: Vec<v1::Task>,
    /// The last that was looked at.
    last: Option<String>,
}

/// A term of the filter.
struct Condition {
    field: Field,
    /// `=` rather than `!=`.
    is: bool,
}

enum Field {
    State(i32),
    Operation(i32),
    Reason(i32),
    Asset(String),
    Partition(String),
    Pool(String),
}

impl Condition {
    fn of(term: &Term) -> Result<Condition, Error> {
        let text = || term.value.clone();
        let field = match term.field.as_str() {
            "state" => Field::State(answer::named(
                v1::TaskState::from_str_name,
                "TASK_STATE_",
                term,
            )?),
            "operation" => Field::Operation(answer::named(
                v1::Operation::from_str_name,
                "OPERATION_",
                term,
            )?),
            "reason" => {
                let from_name = v1::TransitionReason::from_str_name;
                Field::Reason(answer::named(from_name, "TRANSITION_REASON_", term)?)
            }
            "asset_key" => Field::Asset(term.value.replacen('.', "/", 1)),
            "partition_key" => Field::Partition(text()),
            _ => Field::Pool(text()),
        };
        Ok(Condition {
            field,
            is: term.is_equality()?,
        })
    }

    fn fits(&self, task: &v1::Task) -> bool {
        let equal = match &self.field {
            Field::State(state) => *state == task.state,
            Field::Operation(operation) => *operation == task.operation,
            Field::Reason(reason) => *reason == task.reason,
            Field::Asset(key) => *key == task.asset_key,
            Field::Partition(key) => *key == task.partition_key,
            Field::Pool(pool) => *pool == task.pool,
        };
        equal == self.is
    }
}

/// How many children each mapped task has; most plans have no such task.
async fn children(
    tx: &mut TenantTx,
    run: &RunRow,
    graph: &Graph,
) -> Result<Vec<(i32, i64)>, Error> {
    if graph.tasks.iter().all(|task| task.mapped_over.is_none()) {
        return Ok(Vec::new());
    }
    let counts = query(include_str!("../store/children.sql")).bind(run.run_number);
    tx.all(counts).await.map_err(answer::store)
}

pub(super) async fn get_task(
    scheduler: &Scheduler,
    asked: v1::GetTaskRequest,
) -> Result<v1::GetTaskResponse, Error> {
    wait::for_event(scheduler, &asked.wait_for_event_id).await?;
    let missing = || answer::task_not_found(&asked.run_id, &asked.task_id);
    let mut tx = scheduler
        .store
        .requests()
        .begin(&asked.tenant)
        .await
        .map_err(answer::store)?;
    let run = get_run::row(&mut tx, &asked.workspace, &asked.run_id).await?;
    let graph = get_run::graph(scheduler, &asked.tenant, &asked.workspace, &run)
        .await?
        .ok_or_else(missing)?;
    let children = children(&mut tx, &run, &graph).await?;
    let (slot, row) = find(&mut tx, &run, &graph, &asked.task_id)
        .await?
        .ok_or_else(missing)?;
    let told = story::read(&mut tx, &run, Some(&graph), Some(slot)).await?;
    tx.commit().await.map_err(answer::store)?;
    let mut task = wire::task_to_proto(&asked.run_id, &row, &graph, &children);
    if let (Some(task), Some(attempt)) = (&mut task, row.task.attempt_id) {
        add_beat(scheduler, task, attempt).await?;
    }
    Ok(v1::GetTaskResponse {
        task,
        attempts: told.attempts,
        history: told.task,
    })
}

/// The last sign of life of its attempt, and how far that said it was.
async fn add_beat(scheduler: &Scheduler, task: &mut v1::Task, attempt: Uuid) -> Result<(), Error> {
    let select = query(include_str!("../store/last_beat.sql")).bind(attempt);
    let rows: Vec<(Timestamp, Option<i32>, Option<String>)> = scheduler
        .store
        .loops()
        .all(select)
        .await
        .map_err(answer::store)?;
    if let Some((beat_at, ppm, message)) = rows.into_iter().next() {
        task.heartbeat_time = Some(wire::timestamp(beat_at.unix_us()));
        task.progress_ppm = ppm.map(i32::unsigned_abs);
        task.progress_message = message.unwrap_or_default();
    }
    Ok(())
}

/// One task of a run.
pub(super) async fn find(
    tx: &mut TenantTx,
    run: &RunRow,
    graph: &Graph,
    task_id: &str,
) -> Result<Option<(Slot, TaskRow)>, Error> {
    let children = children(tx, run, graph).await?;
    let Some(slot) = slot_of(graph, &children, task_id) else {
        return Ok(None);
    };
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
    let planned = (0u32..)
        .zip(&graph.tasks)
        .find(|(_, task)| task.key.id() == wanted);
    if let Some((ordinal, _)) = planned {
        return Some(Slot::planned(ordinal));
    }
    children.iter().find_map(|(parent, count)| {
        let parent = parent.unsigned_abs();
        let items = 0..u32::try_from(*count).unwrap_or(0);
        items
            .map(|item| Slot::child(parent, item))
            .find(|slot| wire::task_key(graph, *slot).id() == wanted)
    })
}

/// The place behind which a page begins.
pub(super) fn after(tokens: &PageTokens, list: &[&str], token: &str) -> Result<(i32, i32), Error> {
    let Some(place) = tokens.read(list, token)? else {
        return Ok((-1, -1));
    };
    let parsed = place
        .split_once('.')
        .and_then(|(ordinal, item)| Some((ordinal.parse().ok()?, item.parse().ok()?)));
    parsed.ok_or_else(|| {
        Error::new(
            Reason::InvalidPageToken,
            "page_token is not one that this list gave; begin anew",
        )
    })
}
