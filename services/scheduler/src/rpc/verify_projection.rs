//! VerifyProjection: whether a table says what the ledger says, by a sample of runs that are folded once more.

mod conflicts;
mod data;
mod partitions;
mod past;
mod runs;

use std::collections::BTreeMap;

use serde_json::Value;
use servo_mesh::{Error, Reason};
use servo_model::Stream;
use servo_proto::v1 as pb;
use servo_store::query;

use self::past::FoldedRun;
use super::projections::Projection;
use super::{Scheduler, answer, story};
use crate::shards::restore;
use crate::store::StoredRun;

const SAMPLE_DEFAULT: u32 = 100;
const SAMPLE_MAX: u32 = 100_000;
const DIFFERENCES_MAX: usize = 100;
/// How often a run that moves while it is read is read again.
const TRIES: usize = 5;

/// Rows by their key.
type Lines = BTreeMap<String, Value>;

/// The rows of a run as they stand, and as its events say.
#[derive(Default)]
struct Comparison {
    live: Lines,
    folded: Lines,
}

pub(super) async fn verify_projection(
    scheduler: &Scheduler,
    request: pb::VerifyProjectionRequest,
) -> Result<pb::VerifyProjectionResponse, Error> {
    let known = Projection::ALL
        .into_iter()
        .find(|projection| projection.name() == request.projection);
    let projection = known.ok_or_else(|| unknown(&request.projection))?;
    let sample = match request.sample_size {
        0 => SAMPLE_DEFAULT,
        n if n <= SAMPLE_MAX => n,
        n => {
            return Err(Error::bad_field(
                "sample_size",
                format!("is {n}; at most {SAMPLE_MAX}"),
            ));
        }
    };
    let shards = shards_of(&request.shards)?;
    let select = query(include_str!("../store/sample_runs.sql"))
        .bind(&shards)
        .bind(i64::from(sample));
    let numbers: Vec<(i64,)> = scheduler
        .store
        .loops()
        .all(select)
        .await
        .map_err(answer::store)?;
    let mut found = pb::VerifyProjectionResponse {
        equal: true,
        ..Default::default()
    };
    for (number,) in numbers {
        if let Some(both) = settled(scheduler, projection, number).await? {
            compare(projection, both, &mut found);
        }
    }
    Ok(found)
}

fn unknown(name: &str) -> Error {
    let names = Projection::ALL.map(Projection::name).join(", ");
    Error::new(
        Reason::ProjectionNotFound,
        format!("there is no projection `{name}`; there are {names}"),
    )
    .with("projection", name)
}

fn shards_of(request: &[u32]) -> Result<Vec<i16>, Error> {
    let count = Stream::Execution.shards();
    let shard = |shard: &u32| {
        let known = i16::try_from(*shard).ok().filter(|shard| *shard < count);
        known.ok_or_else(|| {
            Error::bad_field(
                "shards",
                format!("there is no shard {shard}; 0 to {}", count - 1),
            )
        })
    };
    match request.is_empty() {
        true => Ok((0..count).collect()),
        false => request.iter().map(shard).collect(),
    }
}

/// What a run left in a table, both ways; none for one that keeps moving while it is read.
async fn settled(
    scheduler: &Scheduler,
    projection: Projection,
    number: i64,
) -> Result<Option<Comparison>, Error> {
    let mut ended = None;
    for _ in 0..TRIES {
        let before = watermark(scheduler, number).await?;
        let Some(row) = past::row(scheduler, number).await? else {
            break;
        };
        // Its rows stand still on purpose.
        if row.set_aside.is_some() {
            break;
        }
        let Some(past) = past::read(scheduler, &row, before).await? else {
            break;
        };
        let has_ended = row.ended_at.is_some() && past.run.ended_at.is_some();
        let Some(both) = both_ways(scheduler, projection, row, &past).await? else {
            break;
        };
        if both.live == both.folded || watermark(scheduler, number).await? == before {
            return Ok(Some(both));
        }
        // Others of its shard go on for ever; of one that has ended, hardly anything changes any more.
        ended = has_ended.then_some(both);
    }
    Ok(ended)
}

async fn watermark(scheduler: &Scheduler, run_number: i64) -> Result<i64, Error> {
    let (shard, _) = story::place(run_number);
    let select = query(include_str!("../store/watermark.sql")).bind(shard);
    let marks: Vec<(i64,)> = scheduler
        .store
        .loops()
        .all(select)
        .await
        .map_err(answer::store)?;
    Ok(marks.first().map_or(0, |(mark,)| *mark))
}

/// The events are read before the rows, so a row is never older than what is compared with it.
async fn both_ways(
    scheduler: &Scheduler,
    projection: Projection,
    row: StoredRun,
    past: &FoldedRun,
) -> Result<Option<Comparison>, Error> {
    let lines = match projection {
        Projection::Runs => runs::run_lines,
        Projection::Tasks => runs::task_lines,
        Projection::CheckResults => return data::check_results(scheduler, past).await.map(Some),
        Projection::Materializations => {
            return data::materializations(scheduler, past).await.map(Some);
        }
        Projection::Partitions => return partitions::both_ways(scheduler, past).await.map(Some),
        Projection::RunKeyConflicts => {
            return conflicts::both_ways(scheduler, past).await.map(Some);
        }
    };
    let loops = scheduler.store.loops();
    let live = restore(loops, &scheduler.plans, vec![row])
        .await
        .map_err(answer::store)?
        .pop();
    Ok(live.map(|live| Comparison {
        live: lines(&live),
        folded: lines(&past.run),
    }))
}

fn compare(projection: Projection, mut both: Comparison, found: &mut pb::VerifyProjectionResponse) {
    let mut differ = |key_json: String, live: Option<Value>, folded: Option<Value>| {
        let text = |line: Option<Value>| line.map_or_else(String::new, |line| line.to_string());
        found.equal = false;
        found.different_rows += 1;
        if found.differences.len() < DIFFERENCES_MAX {
            found.differences.push(pb::RowDifference {
                key_json,
                live_json: text(live),
                folded_json: text(folded),
                projection: projection.name().to_owned(),
            });
        }
    };
    let mut compared = 0;
    for (key, live) in both.live {
        compared += 1;
        match both.folded.remove(&key) {
            Some(folded) if folded == live => {}
            other => differ(key, Some(live), other),
        }
    }
    for (key, line) in both.folded {
        compared += 1;
        differ(key, None, Some(line));
    }
    found.compared_rows += compared;
}
