//! ListTasks and GetTask: a run's tasks as their rows tell them, and one of them with its history.

use servo_mesh::filter::{self, Term};
use servo_mesh::paging::{PageTokens, page_size};
use servo_mesh::{Error, Reason};
use servo_model::{TaskId, TaskRef};
use servo_proto::v1 as pb;
use servo_store::{TenantTx, Timestamp, query};
use uuid::Uuid;

use super::{Scheduler, answer, get_run, story, wait};
use crate::core::Plan;
use crate::wire::{self, RunRecord, TaskRecord};

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
    request: pb::ListTasksRequest,
) -> Result<pb::ListTasksResponse, Error> {
    let terms = filter::parse(&request.filter, &FIELDS)?;
    let conditions = terms
        .iter()
        .map(Condition::of)
        .collect::<Result<Vec<_>, _>>()?;
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let size = page_size(request.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = [
        "tasks",
        &request.tenant,
        &request.workspace,
        &request.run_id,
        &request.filter,
    ];
    let (ordinal, item) = after(&scheduler.tokens, &list, &request.page_token)?;
    let mut tx = scheduler
        .store
        .requests()
        .begin(&request.tenant)
        .await
        .map_err(answer::store)?;
    let run = get_run::row(&mut tx, &request.workspace, &request.run_id).await?;
    let plan = get_run::plan(scheduler, &request.tenant, &request.workspace, &run).await?;
    let Some(plan) = plan else {
        return Ok(pb::ListTasksResponse::default());
    };
    let children = children(&mut tx, &run, &plan).await?;
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
    let rows: Vec<TaskRecord> = tx.all(select).await.map_err(answer::store)?;
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
        let task = wire::task_to_proto(&request.run_id, row, &plan, &children);
        page.tasks
            .extend(task.filter(|task| conditions.iter().all(|condition| condition.fits(task))));
    }
    let end = rows
        .last()
        .map(|row| format!("{}.{}", row.task.ordinal, row.task.item));
    let next = page.last.filter(|last| Some(last) != end.as_ref());
    Ok(pb::ListTasksResponse {
        tasks: page.tasks,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

struct Page {
    tasks: Vec<pb::Task>,
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
                pb::TaskState::from_str_name,
                "TASK_STATE_",
                term,
            )?),
            "operation" => Field::Operation(answer::named(
                pb::Operation::from_str_name,
                "OPERATION_",
                term,
            )?),
            "reason" => {
                let from_name = pb::TransitionReason::from_str_name;
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

    fn fits(&self, task: &pb::Task) -> bool {
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
    run: &RunRecord,
    plan: &Plan,
) -> Result<Vec<(i32, i64)>, Error> {
    if plan.tasks.iter().all(|task| task.mapped_over.is_none()) {
        return Ok(Vec::new());
    }
    let counts = query(include_str!("../store/children.sql")).bind(run.run_number);
    tx.all(counts).await.map_err(answer::store)
}

pub(super) async fn get_task(
    scheduler: &Scheduler,
    request: pb::GetTaskRequest,
) -> Result<pb::GetTaskResponse, Error> {
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let missing = || answer::task_not_found(&request.run_id, &request.task_id);
    let mut tx = scheduler
        .store
        .requests()
        .begin(&request.tenant)
        .await
        .map_err(answer::store)?;
    let run = get_run::row(&mut tx, &request.workspace, &request.run_id).await?;
    let plan = get_run::plan(scheduler, &request.tenant, &request.workspace, &run)
        .await?
        .ok_or_else(missing)?;
    let children = children(&mut tx, &run, &plan).await?;
    let (task_ref, row) = find(&mut tx, &run, &plan, &request.task_id)
        .await?
        .ok_or_else(missing)?;
    let message = story::read(&mut tx, &run, Some(&plan), Some(task_ref)).await?;
    tx.commit().await.map_err(answer::store)?;
    let mut task = wire::task_to_proto(&request.run_id, &row, &plan, &children);
    if let (Some(task), Some(attempt)) = (&mut task, row.task.attempt_id) {
        add_beat(scheduler, task, attempt).await?;
    }
    Ok(pb::GetTaskResponse {
        task,
        attempts: message.attempts,
        history: message.task,
    })
}

/// The last sign of life of its attempt, and how far that said it was.
async fn add_beat(scheduler: &Scheduler, task: &mut pb::Task, attempt: Uuid) -> Result<(), Error> {
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
    run: &RunRecord,
    plan: &Plan,
    task_id: &str,
) -> Result<Option<(TaskRef, TaskRecord)>, Error> {
    let children = children(tx, run, plan).await?;
    let Some(task_ref) = slot_of(plan, &children, task_id) else {
        return Ok(None);
    };
    let select = query(include_str!("../store/task.sql"))
        .bind(run.run_number)
        .bind(task_ref.ordinal.cast_signed())
        .bind(task_ref.map_index.map_or(-1, u32::cast_signed));
    let row: Option<TaskRecord> = tx.optional(select).await.map_err(answer::store)?;
    Ok(row.map(|row| (task_ref, row)))
}

/// Task ids are derived from keys, so the plan is looked through; children only where a task has some.
pub(super) fn slot_of(plan: &Plan, children: &[(i32, i64)], task_id: &str) -> Option<TaskRef> {
    let wanted: TaskId = task_id.parse().ok()?;
    let planned = (0u32..)
        .zip(&plan.tasks)
        .find(|(_, task)| task.key.id() == wanted);
    if let Some((ordinal, _)) = planned {
        return Some(TaskRef::planned(ordinal));
    }
    children.iter().find_map(|(parent, count)| {
        let parent = parent.unsigned_abs();
        let items = 0..u32::try_from(*count).unwrap_or(0);
        items
            .map(|item| TaskRef::mapped(parent, item))
            .find(|task_ref| wire::task_key(plan, *task_ref).id() == wanted)
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
