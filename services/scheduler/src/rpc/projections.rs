//! ListProjections and VerifyProjection: how far the tables are folded, and whether they say what the ledger says.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_model::Stream;
use servo_proto::v1;
use servo_store::{Event, query};

use super::{Scheduler, answer, story};
use crate::core::{Cell, Run};
use crate::replay::Replay;
use crate::shards::restore;
use crate::store::StoredRun;

const RUNS: &str = "scheduler.runs";
const TASKS: &str = "scheduler.tasks";
/// What the fold writes, by name.
const PROJECTIONS: [&str; 6] = [
    "scheduler.check_results",
    "scheduler.materializations",
    "scheduler.partitions",
    "scheduler.run_key_conflicts",
    RUNS,
    TASKS,
];

const SAMPLE_DEFAULT: u32 = 100;
const SAMPLE_MAX: u32 = 100_000;
const DIFFERENCES_MAX: usize = 100;
/// How often a run that is under way is read again because it moved meanwhile.
const TRIES: usize = 5;

pub(super) async fn list_projections(
    scheduler: &Scheduler,
    asked: v1::ListProjectionsRequest,
) -> Result<v1::ListProjectionsResponse, Error> {
    let size = page_size(asked.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = ["projections"];
    let after = scheduler.tokens.read(&list, &asked.page_token)?.unwrap_or_default();
    let rows: Vec<(i16, i64, i64, Option<String>, i64)> = scheduler
        .store
        .loops()
        .all(query(include_str!("../store/shards.sql")))
        .await
        .map_err(answer::store)?;
    let shards: Vec<v1::ShardStatus> = rows
        .into_iter()
        .map(|(shard, head, watermark, holder, epoch)| v1::ShardStatus {
            shard: u32::from(shard.unsigned_abs()),
            head: head.unsigned_abs(),
            watermark: watermark.unsigned_abs(),
            holder: holder.unwrap_or_default(),
            epoch: epoch.unsigned_abs(),
            fault: if scheduler.shards.is_unreadable(shard) { UNREADABLE.to_owned() } else { String::new() },
        })
        .collect();
    let mut names = PROJECTIONS.into_iter().filter(|name| **name > *after);
    let page: Vec<&str> = names.by_ref().take(size).collect();
    let next = page.last().filter(|_| names.next().is_some());
    let next_page_token = next.map_or_else(String::new, |last| scheduler.tokens.write(&list, last));
    let show = |name: &str| v1::Projection {
        projection: name.to_owned(),
        stream: Stream::Execution.name().to_owned(),
        shards: shards.clone(),
        ..Default::default()
    };
    Ok(v1::ListProjectionsResponse { projections: page.into_iter().map(show).collect(), next_page_token })
}

const UNREADABLE: &str = "it holds an event that this version does not know; a newer one must take it";

pub(super) async fn verify_projection(
    scheduler: &Scheduler,
    asked: v1::VerifyProjectionRequest,
) -> Result<v1::VerifyProjectionResponse, Error> {
    let lines: fn(&Run) -> Lines = match asked.projection.as_str() {
        RUNS => run_lines,
        TASKS => task_lines,
        other => return Err(unknown(other)),
    };
    let sample = match asked.sample_size {
        0 => SAMPLE_DEFAULT,
        n if n <= SAMPLE_MAX => n,
        n => return Err(Error::bad_field("sample_size", format!("is {n}; at most {SAMPLE_MAX}"))),
    };
    let shards = shards_of(&asked.shards)?;
    let select = query(include_str!("../store/sample_runs.sql")).bind(&shards).bind(i64::from(sample));
    let numbers: Vec<(i64,)> = scheduler.store.loops().all(select).await.map_err(answer::store)?;
    let mut found = v1::VerifyProjectionResponse { equal: true, ..Default::default() };
    for (number,) in numbers {
        if let Some((live, folded)) = both_ways(scheduler, number).await? {
            compare(lines(&live), lines(&folded), &mut found);
        }
    }
    Ok(found)
}

fn unknown(name: &str) -> Error {
    let told = match PROJECTIONS.contains(&name) {
        true => format!("`{name}` is compared by a rebuild only; {RUNS} and {TASKS} can be verified"),
        false => format!("there is no projection `{name}`; {RUNS} and {TASKS} can be verified"),
    };
    Error::new(Reason::ProjectionNotFound, told).with("projection", name)
}

fn shards_of(asked: &[u32]) -> Result<Vec<i16>, Error> {
    let count = Stream::Execution.shards();
    let shard = |shard: &u32| {
        let known = i16::try_from(*shard).ok().filter(|shard| *shard < count);
        known.ok_or_else(|| {
            Error::bad_field("shards", format!("there is no shard {shard}; 0 to {}", count - 1))
        })
    };
    match asked.is_empty() {
        true => Ok((0..count).collect()),
        false => asked.iter().map(shard).collect(),
    }
}

/// A run from its rows, and from its events; none for one that keeps moving while it is read.
async fn both_ways(scheduler: &Scheduler, number: i64) -> Result<Option<(Run, Run)>, Error> {
    let loops = scheduler.store.loops();
    for _ in 0..TRIES {
        let before = watermark(scheduler, number).await?;
        let select = query(include_str!("../store/run_by_number.sql")).bind(number);
        let Some(row) = loops.all::<StoredRun>(select).await.map_err(answer::store)?.pop() else { break };
        // Its rows stand still on purpose.
        if row.set_aside.is_some() {
            break;
        }
        let folded = fold_events(scheduler, &row, before).await?;
        let live = restore(loops, &scheduler.plans, vec![row]).await.map_err(answer::store)?.pop();
        let Some((live, folded)) = live.zip(folded) else { break };
        let both_ended = live.ended_at.is_some() && folded.ended_at.is_some();
        if both_ended || watermark(scheduler, number).await? == before {
            return Ok(Some((live, folded)));
        }
    }
    Ok(None)
}

async fn watermark(scheduler: &Scheduler, run_number: i64) -> Result<i64, Error> {
    let (shard, _) = story::place(run_number);
    let select = query(include_str!("../store/watermark.sql")).bind(shard);
    let marks: Vec<(i64,)> = scheduler.store.loops().all(select).await.map_err(answer::store)?;
    Ok(marks.first().map_or(0, |(mark,)| *mark))
}

async fn fold_events(scheduler: &Scheduler, row: &StoredRun, until: i64) -> Result<Option<Run>, Error> {
    let (shard, first) = story::place(row.run_number);
    let select = query(include_str!("../store/run_events.sql"))
        .bind(shard)
        .bind(first)
        .bind(until)
        .bind(row.run_id)
        .bind(row.created_at)
        .bind(row.ended_at);
    let events: Vec<Event> = scheduler.store.loops().all(select).await.map_err(answer::store)?;
    let plan_id = row.plan_id.as_deref().and_then(|id| <[u8; 32]>::try_from(id).ok());
    let graph = match plan_id {
        Some(plan_id) => {
            let loops = scheduler.store.loops();
            scheduler.plans.find(loops, &row.tenant, &row.workspace, plan_id).await.map_err(answer::store)?
        }
        None => None,
    };
    let mut replay = Replay::new(row.run_number, graph);
    for event in &events {
        replay.fold(event).map_err(|fault| Error::new(Reason::Internal, fault))?;
    }
    Ok(replay.begun.map(|begun| begun.run))
}

/// Rows by their key.
type Lines = BTreeMap<String, Value>;

fn compare(live: Lines, mut folded: Lines, found: &mut v1::VerifyProjectionResponse) {
    let mut differ = |key: String, live: String, folded: String| {
        found.equal = false;
        found.different_rows += 1;
        if found.differences.len() < DIFFERENCES_MAX {
            let difference = v1::RowDifference { key_json: key, live_json: live, folded_json: folded };
            found.differences.push(difference);
        }
    };
    let mut compared = 0;
    for (key, live) in live {
        compared += 1;
        match folded.remove(&key) {
            Some(folded) if folded == live => {}
            other => differ(key, live.to_string(), other.map_or_else(String::new, |line| line.to_string())),
        }
    }
    for (key, line) in folded {
        compared += 1;
        differ(key, String::new(), line.to_string());
    }
    found.compared_rows += compared;
}

fn run_lines(run: &Run) -> Lines {
    let counts: Vec<u32> =
        servo_model::states::TaskState::ALL.iter().map(|state| run.counts().of(*state)).collect();
    let line = json!({
        "state": run.state.to_string(),
        "reason": run.reason.to_string(),
        "stopped_by": run.stopped_by.map(|by| format!("{by:?}")),
        "version": run.version,
        "changed_at": run.changed_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "error": run.error.as_ref().map(|(ordinal, error)| json!([ordinal, error])),
        "plan_id": run.graph.as_ref().map(|graph| servo_model::Digest::from_bytes(graph.plan_id).to_string()),
        "tasks": counts,
    });
    Lines::from([(json!({ "run_id": run.header.run_id.to_string() }).to_string(), line)])
}

fn task_lines(run: &Run) -> Lines {
    let run_id = run.header.run_id.to_string();
    let key = |slot: crate::core::Slot| {
        json!({ "run_id": run_id, "ordinal": slot.ordinal, "item": slot.item }).to_string()
    };
    run.cells().map(|(slot, cell)| (key(slot), task_line(cell))).collect()
}

fn task_line(cell: &Cell) -> Value {
    json!({
        "state": cell.state.to_string(),
        "reason": cell.reason.to_string(),
        "attempt": cell.attempt,
        "failures": cell.failures,
        "attempt_id": cell.attempt_id.map(|id| id.to_string()),
        "cancelling": cell.cancelling,
        "pushed": cell.pushed,
        "session": cell.session,
        "worker": cell.worker.map(|id| servo_model::WorkerId::from_bytes(id).to_string()),
        "changed_at": cell.changed_at,
        "ready_at": cell.ready_at,
        "claimed_at": cell.claimed_at,
        "started_at": cell.started_at,
        "ended_at": cell.ended_at,
        "due_at": cell.due_at,
    })
}
