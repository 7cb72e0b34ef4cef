//! Comparing rows with those that the events of their run fold to.

mod conflicts;
mod data;
mod folded_run;
mod partitions;
mod runs;

use std::collections::BTreeMap;

use serde_json::Value;
use servo_mesh::Error;
use servo_model::Position;
use servo_proto::v1 as pb;

use self::folded_run::FoldedRun;
use super::projection::Projection;
use super::{Reads, errors, run_history};
use crate::shards::restore;
use crate::store::runs::StoredRun;
use crate::store::shards;

const DIFFERENCES_MAX: usize = 100;
/// How often a run that changes while it is read is read again.
const TRIES: usize = 5;

/// Rows by their key.
type Rows = BTreeMap<String, Value>;

/// The rows of a run in the table, and those that its events fold to.
#[derive(Default)]
pub(crate) struct Comparison {
    live: Rows,
    folded: Rows,
}

/// Compares the rows of a run with those that its events fold to. Returns `None` for a run that is
/// set aside, has no events any more, or keeps changing while it is read.
pub(crate) async fn compare_run(
    reads: &Reads,
    projection: Projection,
    number: i64,
) -> Result<Option<Comparison>, Error> {
    let mut ended = None;
    for _ in 0..TRIES {
        let before = watermark(reads, number).await?;
        let Some(row) = folded_run::find_row(reads, number).await? else {
            break;
        };
        // The rows of a run that is set aside do not follow its events.
        if row.set_aside.is_some() {
            break;
        }
        let Some(folded_run) = folded_run::read(reads, &row, before).await? else {
            break;
        };
        let has_ended = row.ended_at.is_some() && folded_run.run.ended_at.is_some();
        let Some(comparison) = compare_rows(reads, projection, row, &folded_run).await? else {
            break;
        };
        if comparison.live == comparison.folded || watermark(reads, number).await? == before {
            return Ok(Some(comparison));
        }
        // The shard may never be idle, but an ended run hardly changes, so its comparison counts.
        ended = has_ended.then_some(comparison);
    }
    Ok(ended)
}

async fn watermark(reads: &Reads, run_number: i64) -> Result<Position, Error> {
    let (shard, _) = run_history::first_event(run_number);
    shards::watermark(reads.store.loops(), shard)
        .await
        .map_err(errors::store)
}

/// Reads the rows after the events, so that a row is never older than the events.
async fn compare_rows(
    reads: &Reads,
    projection: Projection,
    row: StoredRun,
    folded_run: &FoldedRun,
) -> Result<Option<Comparison>, Error> {
    let rows_of = match projection {
        Projection::Runs => runs::run_rows,
        Projection::Tasks => runs::task_rows,
        Projection::CheckResults => return data::check_results(reads, folded_run).await.map(Some),
        Projection::Materializations => {
            return data::materializations(reads, folded_run).await.map(Some);
        }
        Projection::Partitions => {
            return partitions::compare_rows(reads, folded_run).await.map(Some);
        }
        Projection::RunKeyConflicts => {
            return conflicts::compare_rows(reads, folded_run).await.map(Some);
        }
    };
    let loops = reads.store.loops();
    let live = restore(loops, &reads.plans, vec![row])
        .await
        .map_err(errors::store)?
        .runs
        .pop();
    Ok(live.map(|live| Comparison {
        live: rows_of(&live),
        folded: rows_of(&folded_run.run),
    }))
}

pub(crate) fn add_differences(
    projection: Projection,
    mut comparison: Comparison,
    found: &mut pb::VerifyProjectionResponse,
) {
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
    for (key, live) in comparison.live {
        compared += 1;
        match comparison.folded.remove(&key) {
            Some(folded) if folded == live => {}
            other => differ(key, Some(live), other),
        }
    }
    for (key, line) in comparison.folded {
        compared += 1;
        differ(key, None, Some(line));
    }
    found.compared_rows += compared;
}
