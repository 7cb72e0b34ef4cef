//! What the scheduler knows of partitions, read by grant.

use std::collections::HashMap;

use servo_model::states::{MaterializationState, TaskState};
use servo_store::{LoopStore, StoreError, Timestamp, Tx, query};

use super::{Scope, scoped};
use crate::core::freshness::{Place, Status, Statuses, Version};
use crate::core::survey::{Known, Made};

type Row = (
    i64,
    Option<Timestamp>,
    Option<Timestamp>,
    Option<String>,
    i16,
);

macro_rules! select {
    ($wanted:expr) => {
        query(include_str!("sql/partition_statuses.sql"))
            .bind(
                $wanted
                    .iter()
                    .map(|(scope, _)| scope.tenant.as_str())
                    .collect::<Vec<_>>(),
            )
            .bind(
                $wanted
                    .iter()
                    .map(|(scope, _)| scope.workspace.as_str())
                    .collect::<Vec<_>>(),
            )
            .bind(
                $wanted
                    .iter()
                    .map(|(_, place)| place.0.as_str())
                    .collect::<Vec<_>>(),
            )
            .bind(
                $wanted
                    .iter()
                    .map(|(_, place)| place.1.as_str())
                    .collect::<Vec<_>>(),
            )
    };
}

/// Of one plan.
pub(crate) async fn of_one(
    tx: &mut Tx,
    scope: &Scope,
    places: &[Place],
) -> Result<Statuses, StoreError> {
    if places.is_empty() {
        return Ok(Statuses::new());
    }
    let wanted: Vec<(&Scope, &Place)> = places.iter().map(|place| (scope, place)).collect();
    let rows: Vec<Row> = tx.all(select!(wanted)).await?;
    Ok(rows
        .into_iter()
        .filter_map(|row| Some(((*wanted.get(index(&row)?)?.1).clone(), status(row))))
        .collect())
}

/// Of many plans, each as a list of its own; no statement when all of them are empty.
pub(crate) async fn of_many(
    loops: &LoopStore,
    plans: &[(&Scope, Vec<Place>)],
) -> Result<Vec<Statuses>, StoreError> {
    let numbered = (0usize..).zip(plans);
    let (plan_of, wanted): (Vec<usize>, Vec<(&Scope, &Place)>) = numbered
        .flat_map(|(plan, (scope, places))| places.iter().map(move |place| (plan, (*scope, place))))
        .unzip();
    let mut statuses = vec![Statuses::new(); plans.len()];
    if wanted.is_empty() {
        return Ok(statuses);
    }
    let rows: Vec<Row> = loops.all(select!(wanted)).await?;
    for row in rows {
        let Some(index) = index(&row).filter(|index| *index < wanted.len()) else {
            continue;
        };
        statuses[plan_of[index]].insert(wanted[index].1.clone(), status(row));
    }
    Ok(statuses)
}

/// Postgres counts from 1.
fn index(row: &Row) -> Option<usize> {
    usize::try_from(row.0 - 1).ok()
}

fn status((_, recorded_at, readable_at, code, attempt): Row) -> Status {
    let version = |(recorded_at, readable_at): (Timestamp, Timestamp)| Version {
        recorded_at: recorded_at.unix_us(),
        readable_at: readable_at.unix_us(),
        code: code.unwrap_or_default(),
    };
    Status {
        made: recorded_at.zip(readable_at).map(version),
        failed: attempt == TaskState::Failed.code(),
    }
}

/// Partitions that a deployment looks at. Who has more has very many, and nobody waits for the exact number.
const COUNTED_MAX: i64 = 200_000;

/// How many partitions of these assets hold data of another code version than the one named with each, as far as anybody
/// wants to know.
pub(crate) async fn count_stale(
    tx: &mut Tx,
    scope: &Scope,
    assets: Vec<(String, String)>,
) -> Result<u64, StoreError> {
    if assets.is_empty() {
        return Ok(0);
    }
    let (keys, versions): (Vec<String>, Vec<String>) = assets.into_iter().unzip();
    let (count,): (i64,) = tx
        .one(
            scoped!("count_stale", scope)
                .bind(keys)
                .bind(versions)
                .bind(COUNTED_MAX),
        )
        .await?;
    Ok(count.unsigned_abs())
}

/// What one statement reads of an asset.
const PARTITIONS_PER_READ: i64 = 20_000;

/// Keys, when each version was recorded, whether it is by this code, how the newest attempt ended and whether its output
/// waits for a decision. Nothing at all when there are none.
type Columns = (
    Option<Vec<String>>,
    Option<Vec<Option<Timestamp>>>,
    Option<Vec<bool>>,
    Option<Vec<i16>>,
    Option<Vec<bool>>,
);

/// Of all partitions of an asset that were ever tried, also those that exist no more. `each` hears of them by their keys.
pub(crate) async fn of_asset(
    tx: &mut Tx,
    scope: &Scope,
    asset: &str,
    code_version: &str,
    mut each: impl FnMut(&str, Known),
) -> Result<(), StoreError> {
    let approved = approved(tx, scope, asset).await?;
    let mut from = String::new();
    loop {
        let select = query(include_str!("sql/asset_statuses.sql"))
            .bind(scope.tenant.clone())
            .bind(scope.workspace.clone())
            .bind(asset.to_owned())
            .bind(code_version.to_owned())
            .bind(from)
            .bind(PARTITIONS_PER_READ)
            .bind(TaskState::Succeeded.code())
            .bind(MaterializationState::Quarantined.code());
        let columns: Vec<Columns> = tx.all(select).await?;
        let Some((Some(keys), Some(recorded), Some(code), Some(attempts), Some(waits))) =
            columns.into_iter().next()
        else {
            return Ok(());
        };
        for (index, key) in keys.iter().enumerate() {
            let made = recorded[index].map(|recorded_at| Made {
                recorded_at: recorded_at.unix_us(),
                readable_at: approved.get(key).copied().unwrap_or(recorded_at).unix_us(),
                same_code: code[index],
            });
            let failed = attempts[index] == TaskState::Failed.code();
            each(
                key,
                Known {
                    made,
                    failed,
                    quarantined: waits[index],
                },
            );
        }
        if (keys.len() as i64) < PARTITIONS_PER_READ {
            return Ok(());
        }
        // The least text behind the last key.
        from = keys.into_iter().max().unwrap_or_default() + "\u{1}";
    }
}

/// Since when readers get those that were approved, by partition.
async fn approved(
    tx: &mut Tx,
    scope: &Scope,
    asset: &str,
) -> Result<HashMap<String, Timestamp>, StoreError> {
    let select = query(include_str!("sql/approved_versions.sql"))
        .bind(scope.tenant.clone())
        .bind(scope.workspace.clone())
        .bind(asset.to_owned());
    let rows: Vec<(String, Timestamp)> = tx.all(select).await?;
    Ok(rows.into_iter().collect())
}
