//! Partitions, as lines to compare. A partition's row is what is left of all runs that ever touched it: it must name the
//! latest of them, so what the run of the sample did is put beside what the runs did that the row names.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};
use servo_mesh::Error;
use servo_store::sqlx::FromRow;
use servo_store::{Timestamp, query};
use uuid::Uuid;

use super::past::{self, FoldedRun};
use super::{Comparison, data};
use crate::core::PartitionUpdate;
use crate::rpc::{Scheduler, answer};

/// Partitions that one statement reads.
const KEYS_PER_READ_MAX: usize = 10_000;
/// Other runs that are folded for the partitions of one; what more of them it would take is not compared.
const OTHERS_PER_RUN_MAX: usize = 100;

/// Asset and partition.
type Key = (String, String);

pub(super) async fn both_ways(
    scheduler: &Scheduler,
    past: &FoldedRun,
) -> Result<Comparison, Error> {
    let number = past.run.header.number;
    let own = TouchedPartitions::by(scheduler, past).await?;
    let rows = read(scheduler, past, own.0.keys()).await?;
    let others = others(scheduler, number, &rows).await?;
    let mut both = Comparison::default();
    for (key, news) in &own.0 {
        let row = rows.get(key);
        let named: BTreeSet<i64> = row
            .into_iter()
            .flat_map(Row::runs)
            .filter(|run| *run != number)
            .collect();
        let mut candidates = vec![(number, news)];
        let mut is_comparable = true;
        for run in named {
            match others.get(&run) {
                Some(Other::TouchedPartitions(touched)) => {
                    candidates.extend(touched.0.get(key).map(|news| (run, news)))
                }
                // A row that names a run which does not exist is wrong.
                Some(Other::Unknown) => {}
                Some(Other::Unreadable) | None => is_comparable = false,
            }
        }
        if is_comparable {
            let text = json!({ "asset_key": key.0, "partition_key": key.1 }).to_string();
            both.live.extend(row.map(|row| (text.clone(), row.line())));
            both.folded
                .extend(Row::latest(key, &candidates).map(|row| (text, row.line())));
        }
    }
    Ok(both)
}

/// How a run left each partition that it touched, which is once.
struct TouchedPartitions(BTreeMap<Key, PartitionUpdate>);

impl TouchedPartitions {
    async fn by(scheduler: &Scheduler, past: &FoldedRun) -> Result<TouchedPartitions, Error> {
        let decisions = data::decisions(scheduler, past).await?;
        let news = past.partitions.iter().cloned().map(|mut news| {
            news.promoted |= decisions.approve(&news.attempt_id);
            ((news.asset_key.clone(), news.partition_key.clone()), news)
        });
        Ok(TouchedPartitions(news.collect()))
    }
}

async fn read(
    scheduler: &Scheduler,
    past: &FoldedRun,
    keys: impl Iterator<Item = &Key>,
) -> Result<HashMap<Key, Row>, Error> {
    let keys: Vec<&Key> = keys.collect();
    let mut found = HashMap::with_capacity(keys.len());
    for some in keys.chunks(KEYS_PER_READ_MAX) {
        let select = query(include_str!("../../store/partition_rows.sql"))
            .bind(past.run.header.tenant.as_str())
            .bind(past.run.header.workspace.as_str())
            .bind(
                some.iter()
                    .map(|(asset, _)| asset.as_str())
                    .collect::<Vec<_>>(),
            )
            .bind(
                some.iter()
                    .map(|(_, partition)| partition.as_str())
                    .collect::<Vec<_>>(),
            );
        let rows: Vec<Row> = scheduler
            .store
            .loops()
            .all(select)
            .await
            .map_err(answer::store)?;
        found.extend(
            rows.into_iter()
                .map(|row| ((row.asset_key.clone(), row.partition_key.clone()), row)),
        );
    }
    Ok(found)
}

/// A run beside the one of the sample.
enum Other {
    TouchedPartitions(TouchedPartitions),
    Unknown,
    /// Set aside, or its events are gone.
    Unreadable,
}

async fn others(
    scheduler: &Scheduler,
    number: i64,
    rows: &HashMap<Key, Row>,
) -> Result<HashMap<i64, Other>, Error> {
    let named: BTreeSet<i64> = rows
        .values()
        .flat_map(Row::runs)
        .filter(|run| *run != number)
        .collect();
    let mut others = HashMap::new();
    for run in named.into_iter().rev().take(OTHERS_PER_RUN_MAX) {
        others.insert(run, other(scheduler, run).await?);
    }
    Ok(others)
}

async fn other(scheduler: &Scheduler, number: i64) -> Result<Other, Error> {
    let Some(row) = past::row(scheduler, number).await? else {
        return Ok(Other::Unknown);
    };
    if row.set_aside.is_some() {
        return Ok(Other::Unreadable);
    }
    let until = super::watermark(scheduler, number).await?;
    match past::read(scheduler, &row, until).await? {
        Some(past) => TouchedPartitions::by(scheduler, &past)
            .await
            .map(Other::TouchedPartitions),
        None => Ok(Other::Unreadable),
    }
}

/// As the table has it.
#[derive(Debug, FromRow)]
struct Row {
    asset_key: String,
    partition_key: String,
    attempt_id: Uuid,
    attempted_at: Timestamp,
    attempt_run: i64,
    attempt_state: i16,
    materialization_id: Option<Uuid>,
    materialized_at: Option<Timestamp>,
    materialized_run: Option<i64>,
    code_version: Option<String>,
}

impl Row {
    /// The runs that it names.
    fn runs(&self) -> impl Iterator<Item = i64> {
        std::iter::once(self.attempt_run).chain(self.materialized_run)
    }

    /// What is left of all these: the last attempt, and the last version that readers get.
    fn latest(
        (asset_key, partition_key): &Key,
        candidates: &[(i64, &PartitionUpdate)],
    ) -> Option<Row> {
        let later = |(_, news): &&(i64, &PartitionUpdate)| (news.at, *news.attempt_id.as_bytes());
        let uuid = |news: &PartitionUpdate| Uuid::from_bytes(*news.attempt_id.as_bytes());
        let (attempt_run, last) = candidates.iter().max_by_key(later)?;
        let made = candidates
            .iter()
            .filter(|(_, news)| news.promoted)
            .max_by_key(later);
        Some(Row {
            asset_key: asset_key.clone(),
            partition_key: partition_key.clone(),
            attempt_id: uuid(last),
            attempted_at: Timestamp::from_unix_us(last.at),
            attempt_run: *attempt_run,
            attempt_state: last.state.code(),
            materialization_id: made.map(|(_, news)| uuid(news)),
            materialized_at: made.map(|(_, news)| Timestamp::from_unix_us(news.at)),
            materialized_run: made.map(|(run, _)| *run),
            code_version: made.map(|(_, news)| news.code_version.clone()),
        })
    }

    fn line(&self) -> Value {
        json!({
            "attempt_id": data::attempt(self.attempt_id),
            "attempted_at": self.attempted_at.unix_us(),
            "attempt_run": self.attempt_run,
            "attempt_state": self.attempt_state,
            "materialization_id": self.materialization_id.map(data::attempt),
            "materialized_at": self.materialized_at.map(Timestamp::unix_us),
            "materialized_run": self.materialized_run,
            "code_version": self.code_version,
        })
    }
}
