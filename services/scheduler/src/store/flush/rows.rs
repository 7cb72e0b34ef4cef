//! The values of a flush, column by column.

use std::collections::BTreeMap;

use servo_model::TaskRef;
use servo_model::states::TaskState;
use servo_store::{HeldBatch, query};
use uuid::Uuid;

use super::parts::{self, Part};
use super::{ChangedRun, Conflict, OutboxMessage, Resolution};
use crate::core::{Materialized, PartitionUpdate, Plan, RecordedCheck, Run, RunHeader, TaskRow};
use crate::store::Statement;
use crate::store::runs::stopped_by_code;

/// Above this many tasks an open run's row stores their counts by state; below it readers count the
/// task rows.
const COUNTED_BY_READERS_MAX: u32 = 500;

/// Everything that a flush writes except events and watermarks.
pub(crate) struct FlushRows<'a> {
    pub(crate) changed: Vec<ChangedRun<'a>>,
    pub(crate) conflicts: &'a [Conflict],
    pub(crate) resolutions: &'a [Resolution],
    pub(crate) outbox: Vec<OutboxMessage>,
    /// The flush contains only claims of pulled tasks, so Postgres may lose it (ADR 7).
    pub(crate) claims_only: bool,
}

/// Builds the statement that stores the batch and its rows, or nothing.
pub(crate) fn statement<'q>(batch: &'q HeldBatch<'q>, rows: &'q FlushRows<'q>) -> Statement<'q> {
    let FlushRows {
        changed,
        conflicts,
        resolutions,
        outbox,
        claims_only,
    } = rows;
    let (new_runs, runs): (Vec<_>, Vec<_>) = changed
        .iter()
        .filter(|c| writes_run_row(c))
        .partition(|c| c.new_row.is_some());
    let (new_tasks, tasks): (Vec<_>, Vec<_>) = task_lines(changed)
        .into_iter()
        .partition(|line| line.created);
    let materialized: Vec<_> = changed
        .iter()
        .flat_map(|c| c.changes.materialized.iter().map(move |m| (c.run, m)))
        .collect();
    let partitions = partition_lines(changed);
    let checks = check_lines(changed);
    let text = parts::text([
        (Part::NewRuns, !new_runs.is_empty()),
        (Part::Runs, !runs.is_empty()),
        (Part::NewTasks, !new_tasks.is_empty()),
        (Part::Tasks, !tasks.is_empty()),
        (Part::Materializations, !materialized.is_empty()),
        (Part::Partitions, !partitions.is_empty()),
        (Part::Checks, !checks.is_empty()),
        (Part::Conflicts, !conflicts.is_empty()),
        (Part::Resolutions, !resolutions.is_empty()),
        (Part::Outbox, !outbox.is_empty()),
        (Part::AsyncCommit, *claims_only),
    ]);
    // In the order of the parts.
    let statement = batch.bind(query(text));
    let statement = bind(statement, &new_runs, bind_new_runs);
    let statement = bind(statement, &runs, bind_runs);
    let statement = bind(statement, &new_tasks, bind_new_tasks);
    let statement = bind(statement, &tasks, bind_tasks);
    let statement = bind(statement, &materialized, bind_materialized);
    let statement = bind(statement, &partitions, bind_partitions);
    let statement = bind(statement, &checks, bind_checks);
    let statement = if conflicts.is_empty() {
        statement
    } else {
        bind_conflicts(statement, conflicts)
    };
    let statement = if resolutions.is_empty() {
        statement
    } else {
        bind_resolutions(statement, resolutions)
    };
    if outbox.is_empty() {
        statement
    } else {
        bind_outbox(statement, outbox)
    }
}

fn writes_run_row(changed: &ChangedRun<'_>) -> bool {
    let recounted = is_counted(changed.run) && !changed.changes.changed.is_empty();
    changed.changes.run || changed.new_row.is_some() || recounted
}

/// Whether a run's row stores the counts of its tasks by state. For an open run that costs an
/// update with every flush: too much for a small run, cheaper than counting in every read for a
/// large one.
fn is_counted(run: &Run) -> bool {
    run.ended_at.is_some() || run.counts().total() > COUNTED_BY_READERS_MAX
}

/// Binds nothing for an empty list, because the statement has no part for it.
fn bind<'q, L>(
    statement: Statement<'q>,
    lines: &[L],
    columns: impl FnOnce(Statement<'q>, &[L]) -> Statement<'q>,
) -> Statement<'q> {
    if lines.is_empty() {
        statement
    } else {
        columns(statement, lines)
    }
}

fn bind_new_runs<'q>(statement: Statement<'q>, new: &[&'q ChangedRun<'q>]) -> Statement<'q> {
    let statement = statement
        .bind(column(new, |c| c.run.header.tenant.as_str()))
        .bind(column(new, |c| c.run.header.workspace.as_str()))
        .bind(column(new, |c| {
            Uuid::from_bytes(*c.run.header.run_id.as_bytes())
        }))
        .bind(column(new, |c| c.run.header.run_id.shard()))
        .bind(sparse(new, |c| {
            c.new_row.map(|row| generation(row.generation))
        }))
        .bind(sparse(new, |c| c.new_row.map(|row| row.run_key.as_str())))
        .bind(sparse(new, |c| c.new_row.map(|row| row.request.as_slice())))
        .bind(sparse(new, |c| c.new_row.map(|row| row.event_id)))
        .bind(column(new, |c| c.run.header.created_at))
        .bind(sparse(new, |c| c.run.header.deadline))
        .bind(sparse(new, |c| c.new_row?.request_id.as_deref()));
    bind_runs(statement, new)
}

fn bind_runs<'q>(statement: Statement<'q>, runs: &[&'q ChangedRun<'q>]) -> Statement<'q> {
    let plan_id = |run: &Run| run.plan.as_ref().map(|plan| plan.plan_id.to_vec());
    let deployment = |run: &Run| run.plan.as_ref().map(|plan| plan.deployment_id.to_string());
    statement
        .bind(column(runs, |c| c.run.header.number))
        .bind(column(runs, |c| c.run.state.code()))
        .bind(column(runs, |c| c.run.reason.code()))
        .bind(sparse(runs, |c| c.run.stopped_by.map(stopped_by_code)))
        .bind(column(runs, |c| {
            i64::try_from(c.run.version).unwrap_or(i64::MAX)
        }))
        .bind(sparse(runs, |c| plan_id(c.run)))
        .bind(sparse(runs, |c| c.plan_fingerprint))
        .bind(sparse(runs, |c| deployment(c.run)))
        .bind(sparse(runs, |c| is_counted(c.run).then(|| counts(c.run))))
        .bind(sparse(runs, |c| {
            c.run.error.as_ref().map(|(_, error)| error.as_str())
        }))
        .bind(sparse(runs, |c| {
            c.run.error.as_ref().map(|(ordinal, _)| int(*ordinal))
        }))
        .bind(column(runs, |c| c.run.changed_at))
        .bind(sparse(runs, |c| c.run.started_at))
        .bind(sparse(runs, |c| c.run.ended_at))
}

/// The text form of an array, because unnest would flatten an array of arrays.
fn counts(run: &Run) -> String {
    let counts: Vec<String> = TaskState::ALL
        .iter()
        .map(|state| run.counts().of(*state).to_string())
        .collect();
    format!("{{{}}}", counts.join(","))
}

struct TaskLine<'a> {
    run: &'a Run,
    task_ref: TaskRef,
    task_row: &'a TaskRow,
    created: bool,
    error: Option<&'a [u8]>,
    items: Option<&'a [u8]>,
}

/// Lists each changed task once, with its final values.
fn task_lines<'a>(changed: &'a [ChangedRun<'a>]) -> Vec<TaskLine<'a>> {
    let mut lines = Vec::new();
    for ChangedRun { run, changes, .. } in changed {
        let (run, mut task_refs) = (*run, changes.changed.clone());
        let mut created = changes.created.clone();
        created.sort_unstable();
        task_refs.sort_unstable();
        task_refs.dedup();
        lines.extend(task_refs.into_iter().filter_map(|task_ref| {
            let errors = changes.errors.iter().rev();
            let error = errors
                .filter(|(of, _)| *of == task_ref)
                .map(|(_, error)| error.as_slice())
                .next();
            let items = run
                .items(task_ref.ordinal)
                .filter(|_| task_ref.map_index.is_none())
                .map(|(_, items)| &**items);
            let created = created.binary_search(&task_ref).is_ok();
            Some(TaskLine {
                run,
                task_ref,
                task_row: run.task_row(task_ref)?,
                created,
                error,
                items,
            })
        }));
    }
    lines
}

fn bind_new_tasks<'q>(statement: Statement<'q>, tasks: &[TaskLine<'q>]) -> Statement<'q> {
    let statement = statement.bind(column(tasks, |t| t.run.header.tenant.as_str()));
    bind_tasks(statement, tasks)
}

fn bind_tasks<'q>(statement: Statement<'q>, tasks: &[TaskLine<'q>]) -> Statement<'q> {
    let uuid = |bytes: [u8; 16]| Uuid::from_bytes(bytes);
    statement
        .bind(column(tasks, |t| t.run.header.number))
        .bind(column(tasks, |t| int(t.task_ref.ordinal)))
        .bind(column(tasks, |t| item(t.task_ref)))
        .bind(column(tasks, |t| int(t.task_row.attempt)))
        .bind(column(tasks, |t| int(t.task_row.failures)))
        .bind(column(tasks, |t| t.task_row.state.code()))
        .bind(column(tasks, |t| t.task_row.reason.code()))
        .bind(column(tasks, |t| t.task_row.cancelling))
        .bind(column(tasks, |t| t.task_row.pushed))
        .bind(column(tasks, |t| t.task_row.changed_at))
        .bind(sparse(tasks, |t| t.task_row.first_ready_at))
        .bind(sparse(tasks, |t| t.task_row.claimed_at))
        .bind(sparse(tasks, |t| t.task_row.started_at))
        .bind(sparse(tasks, |t| t.task_row.ended_at))
        .bind(sparse(tasks, |t| t.task_row.due_at))
        .bind(sparse(tasks, |t| {
            t.task_row.attempt_id.map(|id| uuid(*id.as_bytes()))
        }))
        .bind(sparse(tasks, |t| t.task_row.worker.map(uuid)))
        .bind(sparse(tasks, |t| t.task_row.session.map(u64::cast_signed)))
        .bind(sparse(tasks, |t| t.error))
        .bind(sparse(tasks, |t| t.items))
}

fn bind_materialized<'q>(
    statement: Statement<'q>,
    made: &[(&'q Run, &'q Materialized)],
) -> Statement<'q> {
    statement
        .bind(column(made, |(_, made)| {
            Uuid::from_bytes(*made.attempt_id.as_bytes())
        }))
        .bind(column(made, |(_, made)| made.asset_key.as_str()))
        .bind(column(made, |(_, made)| made.partition_key.as_str()))
        .bind(column(made, |(run, _)| run.header.tenant.as_str()))
        .bind(column(made, |(run, _)| run.header.workspace.as_str()))
        .bind(column(made, |(run, _)| run.header.number))
        .bind(column(made, |(_, made)| int(made.task_ref.ordinal)))
        .bind(column(made, |(_, made)| item(made.task_ref)))
        .bind(column(made, |(_, made)| made.promotion.state().code()))
        .bind(column(made, |(_, made)| made.at))
        .bind(column(made, |(_, made)| made.output.as_slice()))
}

/// The values of a partition; a statement may contain only one row per partition.
struct PartitionLine<'a> {
    run: &'a Run,
    last: &'a PartitionUpdate,
    made: Option<(&'a Run, &'a PartitionUpdate)>,
}

fn partition_lines<'a>(changed: &'a [ChangedRun<'a>]) -> Vec<PartitionLine<'a>> {
    let mut lines: BTreeMap<(&str, &str, &str, &str), PartitionLine<'a>> = BTreeMap::new();
    for (run, update) in changed.iter().flat_map(|c| {
        c.changes
            .partitions
            .iter()
            .map(move |update| (c.run, update))
    }) {
        let RunHeader {
            tenant, workspace, ..
        } = &run.header;
        let line = lines
            .entry((
                tenant.as_str(),
                workspace.as_str(),
                &update.asset_key,
                &update.partition_key,
            ))
            .or_insert(PartitionLine {
                run,
                last: update,
                made: None,
            });
        if is_later(update, line.last) {
            line.run = run;
            line.last = update;
        }
        if update.promoted && line.made.is_none_or(|(_, made)| is_later(update, made)) {
            line.made = Some((run, update));
        }
    }
    lines.into_values().collect()
}

/// The rule by which the statement merges with the stored row, so that it does not matter which
/// runs share a flush.
fn is_later(update: &PartitionUpdate, than: &PartitionUpdate) -> bool {
    (update.at, update.attempt_id.as_bytes()) >= (than.at, than.attempt_id.as_bytes())
}

fn bind_partitions<'q>(statement: Statement<'q>, lines: &[PartitionLine<'q>]) -> Statement<'q> {
    let uuid = |update: &PartitionUpdate| Uuid::from_bytes(*update.attempt_id.as_bytes());
    statement
        .bind(column(lines, |line| line.run.header.tenant.as_str()))
        .bind(column(lines, |line| line.run.header.workspace.as_str()))
        .bind(column(lines, |line| line.last.asset_key.as_str()))
        .bind(column(lines, |line| line.last.partition_key.as_str()))
        .bind(column(lines, |line| uuid(line.last)))
        .bind(column(lines, |line| line.last.at))
        .bind(column(lines, |line| line.run.header.number))
        .bind(column(lines, |line| line.last.state.code()))
        .bind(sparse(lines, |line| line.made.map(|(_, made)| uuid(made))))
        .bind(sparse(lines, |line| line.made.map(|(_, made)| made.at)))
        .bind(sparse(lines, |line| {
            line.made.map(|(run, _)| run.header.number)
        }))
        .bind(sparse(lines, |line| {
            line.made.map(|(_, made)| made.code_version.as_str())
        }))
}

fn bind_conflicts<'q>(statement: Statement<'q>, conflicts: &'q [Conflict]) -> Statement<'q> {
    statement
        .bind(column(conflicts, |conflict| conflict.tenant.as_str()))
        .bind(column(conflicts, |conflict| conflict.workspace.as_str()))
        .bind(column(conflicts, |conflict| conflict.event_id))
        .bind(column(conflicts, |conflict| {
            Uuid::from_bytes(*conflict.run_id.as_bytes())
        }))
        .bind(column(conflicts, |conflict| conflict.request.as_slice()))
        .bind(column(conflicts, |conflict| {
            conflict.fingerprint.digest().as_bytes().as_slice()
        }))
        .bind(column(conflicts, |conflict| conflict.at))
}

fn bind_outbox<'q>(statement: Statement<'q>, outbox: &'q [OutboxMessage]) -> Statement<'q> {
    statement
        .bind(column(outbox, |message| message.shard))
        .bind(column(outbox, |message| message.position))
        .bind(column(outbox, |message| message.run_id))
        .bind(column(outbox, |message| message.tenant.as_str()))
        .bind(column(outbox, |message| message.workspace.as_str()))
        .bind(column(outbox, |message| message.payload.as_slice()))
}

type CheckLine<'a> = (&'a Run, &'a Plan, &'a RecordedCheck);

fn check_lines<'a>(changed: &'a [ChangedRun<'a>]) -> Vec<CheckLine<'a>> {
    let checks = changed
        .iter()
        .flat_map(|c| c.changes.checks.iter().map(move |check| (c.run, check)));
    checks
        .filter_map(|(run, check)| Some((run, &**run.plan.as_ref()?, check)))
        .collect()
}

fn bind_checks<'q>(statement: Statement<'q>, checks: &[CheckLine<'q>]) -> Statement<'q> {
    statement
        .bind(column(checks, |(.., check)| {
            Uuid::from_bytes(*check.attempt_id.as_bytes())
        }))
        .bind(column(checks, |(.., check)| check.index))
        .bind(column(checks, |(run, ..)| run.header.tenant.as_str()))
        .bind(column(checks, |(run, ..)| run.header.workspace.as_str()))
        .bind(column(checks, |(_, plan, check)| {
            &*plan.settings(check.task_ref.ordinal).asset_key
        }))
        .bind(column(checks, |(_, plan, check)| {
            &*plan.task(check.task_ref.ordinal).partition_key
        }))
        .bind(column(checks, |(.., check)| check.found.name.as_str()))
        .bind(column(checks, |(.., check)| check.found.passed))
        .bind(column(checks, |(.., check)| check.found.severity))
        .bind(column(checks, |(run, ..)| run.header.number))
        .bind(column(checks, |(.., check)| int(check.task_ref.ordinal)))
        .bind(column(checks, |(.., check)| item(check.task_ref)))
        .bind(column(checks, |(.., check)| check.at))
        .bind(column(checks, |(.., check)| check.found.result.as_slice()))
}

fn bind_resolutions<'q>(statement: Statement<'q>, resolutions: &'q [Resolution]) -> Statement<'q> {
    statement
        .bind(column(resolutions, |resolution| {
            Uuid::from_bytes(*resolution.attempt_id.as_bytes())
        }))
        .bind(column(resolutions, |resolution| resolution.state.code()))
        .bind(column(resolutions, |resolution| resolution.version))
        .bind(column(resolutions, |resolution| resolution.at))
        .bind(column(resolutions, |resolution| {
            resolution.resolved_by.as_slice()
        }))
        .bind(column(resolutions, |resolution| resolution.event_id))
        .bind(column(resolutions, |resolution| {
            resolution.code_version.as_str()
        }))
}

fn column<'a, L, T>(lines: &'a [L], field: impl Fn(&'a L) -> T) -> Vec<T> {
    lines.iter().map(field).collect()
}

/// `None` for a column without values, because Postgres unpacks every array argument, even one that
/// contains only NULLs.
fn sparse<'a, L, T>(lines: &'a [L], field: impl Fn(&'a L) -> Option<T>) -> Option<Vec<Option<T>>> {
    let values: Vec<Option<T>> = lines.iter().map(field).collect();
    values.iter().any(Option::is_some).then_some(values)
}

fn generation(generation: u32) -> i32 {
    i32::try_from(generation.max(1)).unwrap_or(i32::MAX)
}

fn int(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn item(task_ref: TaskRef) -> i32 {
    task_ref.map_index.map_or(-1, int)
}
