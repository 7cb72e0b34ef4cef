//! Partition rows. A row is a merge over all runs that wrote the partition and must name the latest
//! of them, so the sampled run is compared together with the runs that the row names.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};
use servo_mesh::Error;
use servo_model::Timestamp;
use uuid::Uuid;

use super::folded_run::{self, FoldedRun};
use super::{Comparison, data};
use crate::core::PartitionUpdate;
use crate::reads::{Reads, errors};
use crate::store::partitions::{self, AssetPartition, PartitionRow};

/// How many partitions one statement reads.
const KEYS_PER_READ_MAX: usize = 10_000;
/// How many other runs are folded for one sampled run; partitions that need more are not compared.
const OTHERS_PER_RUN_MAX: usize = 100;

pub(super) async fn compare_rows(
    reads: &Reads,
    folded_run: &FoldedRun,
) -> Result<Comparison, Error> {
    let number = folded_run.run.header.number;
    let own = TouchedPartitions::of(reads, folded_run).await?;
    let rows = read(reads, folded_run, own.0.keys()).await?;
    let others = others(reads, number, &rows).await?;
    let mut comparison = Comparison::default();
    for (key, update) in &own.0 {
        let row = rows.get(key);
        let named: BTreeSet<i64> = row
            .into_iter()
            .flat_map(named_runs)
            .filter(|run| *run != number)
            .collect();
        let mut candidates = vec![(number, update)];
        let mut is_comparable = true;
        for run in named {
            match others.get(&run) {
                Some(OtherRun::Folded(touched)) => {
                    candidates.extend(touched.0.get(key).map(|update| (run, update)))
                }
                // A row that names a run which does not exist is reported as a difference.
                Some(OtherRun::Unknown) => {}
                Some(OtherRun::Unreadable) | None => is_comparable = false,
            }
        }
        if is_comparable {
            let text = json!({ "asset_key": key.0, "partition_key": key.1 }).to_string();
            comparison
                .live
                .extend(row.map(|row| (text.clone(), to_json(row))));
            comparison
                .folded
                .extend(latest_row(key, &candidates).map(|row| (text, to_json(&row))));
        }
    }
    Ok(comparison)
}

/// The last update of a run to each partition.
struct TouchedPartitions(BTreeMap<AssetPartition, PartitionUpdate>);

impl TouchedPartitions {
    async fn of(reads: &Reads, folded_run: &FoldedRun) -> Result<TouchedPartitions, Error> {
        let decisions = data::decisions(reads, folded_run).await?;
        let updates = folded_run.partitions.iter().cloned().map(|mut update| {
            update.promoted |= decisions.approve(&update.attempt_id);
            (
                (update.asset_key.clone(), update.partition_key.clone()),
                update,
            )
        });
        Ok(TouchedPartitions(updates.collect()))
    }
}

async fn read(
    reads: &Reads,
    folded_run: &FoldedRun,
    keys: impl Iterator<Item = &AssetPartition>,
) -> Result<HashMap<AssetPartition, PartitionRow>, Error> {
    let keys: Vec<&AssetPartition> = keys.collect();
    let header = &folded_run.run.header;
    let scope = (&header.tenant, header.workspace.as_str());
    let mut found = HashMap::with_capacity(keys.len());
    for some in keys.chunks(KEYS_PER_READ_MAX) {
        let rows = partitions::list_rows(reads.store.loops(), scope, some)
            .await
            .map_err(errors::store)?;
        found.extend(
            rows.into_iter()
                .map(|row| ((row.asset_key.clone(), row.partition_key.clone()), row)),
        );
    }
    Ok(found)
}

/// A run that a partition row names.
enum OtherRun {
    Folded(TouchedPartitions),
    Unknown,
    /// The run is set aside, or its events are gone.
    Unreadable,
}

async fn others(
    reads: &Reads,
    number: i64,
    rows: &HashMap<AssetPartition, PartitionRow>,
) -> Result<HashMap<i64, OtherRun>, Error> {
    let named: BTreeSet<i64> = rows
        .values()
        .flat_map(named_runs)
        .filter(|run| *run != number)
        .collect();
    let mut others = HashMap::new();
    for run in named.into_iter().rev().take(OTHERS_PER_RUN_MAX) {
        others.insert(run, other(reads, run).await?);
    }
    Ok(others)
}

async fn other(reads: &Reads, number: i64) -> Result<OtherRun, Error> {
    let Some(row) = folded_run::find_row(reads, number).await? else {
        return Ok(OtherRun::Unknown);
    };
    if row.set_aside.is_some() {
        return Ok(OtherRun::Unreadable);
    }
    let until = super::watermark(reads, number).await?;
    match folded_run::read(reads, &row, until).await? {
        Some(folded_run) => TouchedPartitions::of(reads, &folded_run)
            .await
            .map(OtherRun::Folded),
        None => Ok(OtherRun::Unreadable),
    }
}

/// The runs that a row names.
fn named_runs(row: &PartitionRow) -> impl Iterator<Item = i64> {
    std::iter::once(row.attempt_run).chain(row.materialized_run)
}

/// Merges the candidates: the last attempt, and the last promoted materialization.
fn latest_row(
    (asset_key, partition_key): &AssetPartition,
    candidates: &[(i64, &PartitionUpdate)],
) -> Option<PartitionRow> {
    let later = |(_, update): &&(i64, &PartitionUpdate)| (update.at, *update.attempt_id.as_bytes());
    let uuid = |update: &PartitionUpdate| Uuid::from_bytes(*update.attempt_id.as_bytes());
    let (attempt_run, last) = candidates.iter().max_by_key(later)?;
    let made = candidates
        .iter()
        .filter(|(_, update)| update.promoted)
        .max_by_key(later);
    Some(PartitionRow {
        asset_key: asset_key.clone(),
        partition_key: partition_key.clone(),
        attempt_id: uuid(last),
        attempted_at: last.at,
        attempt_run: *attempt_run,
        attempt_state: last.state.code(),
        materialization_id: made.map(|(_, update)| uuid(update)),
        materialized_at: made.map(|(_, update)| update.at),
        materialized_run: made.map(|(run, _)| *run),
        code_version: made.map(|(_, update)| update.code_version.clone()),
    })
}

fn to_json(row: &PartitionRow) -> Value {
    json!({
        "attempt_id": data::attempt(row.attempt_id),
        "attempted_at": row.attempted_at.unix_us(),
        "attempt_run": row.attempt_run,
        "attempt_state": row.attempt_state,
        "materialization_id": row.materialization_id.map(data::attempt),
        "materialized_at": row.materialized_at.map(Timestamp::unix_us),
        "materialized_run": row.materialized_run,
        "code_version": row.code_version,
    })
}
