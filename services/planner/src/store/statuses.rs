//! The state of partitions, read from the scheduler's tables by grant.

use std::collections::HashMap;

use servo_model::Timestamp;
use servo_model::states::{MaterializationState, TaskState};
use servo_store::{LoopStore, StoreError, Tx, query};

use super::{Scope, scoped};
use crate::core::asset_partitions::{AttemptedPartition, PromotedVersion};
use crate::core::freshness::{PartitionRef, Status, Statuses, Version};

type Row = (
    i64,
    Option<Timestamp>,
    Option<Timestamp>,
    Option<String>,
    i16,
);

macro_rules! select {
    ($requested:expr) => {
        query(include_str!("sql/partition_statuses.sql"))
            .bind(
                $requested
                    .iter()
                    .map(|(scope, _)| &scope.tenant)
                    .collect::<Vec<_>>(),
            )
            .bind(
                $requested
                    .iter()
                    .map(|(scope, _)| &scope.workspace)
                    .collect::<Vec<_>>(),
            )
            .bind(
                $requested
                    .iter()
                    .map(|(_, partition)| partition.0.as_str())
                    .collect::<Vec<_>>(),
            )
            .bind(
                $requested
                    .iter()
                    .map(|(_, partition)| partition.1.as_str())
                    .collect::<Vec<_>>(),
            )
    };
}

/// Returns the state of partitions of one workspace; partitions without an attempt have no entry.
pub(crate) async fn of_partitions(
    tx: &mut Tx,
    scope: &Scope,
    partitions: &[PartitionRef],
) -> Result<Statuses, StoreError> {
    if partitions.is_empty() {
        return Ok(Statuses::new());
    }
    let requested: Vec<(&Scope, &PartitionRef)> = partitions
        .iter()
        .map(|partition| (scope, partition))
        .collect();
    let rows: Vec<Row> = tx.all(select!(requested)).await?;
    Ok(rows
        .into_iter()
        .filter_map(|row| Some(((*requested.get(index(&row)?)?.1).clone(), status(row))))
        .collect())
}

/// Returns the state of the partitions of each plan; of none where there is no plan. Runs no
/// statement without partitions.
pub(crate) async fn of_plans(
    loops: &LoopStore,
    plans: &[Option<(&Scope, Vec<PartitionRef>)>],
) -> Result<Vec<Statuses>, StoreError> {
    let numbered = (0usize..).zip(plans);
    let (plan_of, requested): (Vec<usize>, Vec<(&Scope, &PartitionRef)>) = numbered
        .filter_map(|(index, plan)| Some((index, plan.as_ref()?)))
        .flat_map(|(plan, (scope, partitions))| {
            partitions
                .iter()
                .map(move |partition| (plan, (*scope, partition)))
        })
        .unzip();
    let mut statuses = vec![Statuses::new(); plans.len()];
    if requested.is_empty() {
        return Ok(statuses);
    }
    let rows: Vec<Row> = loops.all(select!(requested)).await?;
    for row in rows {
        let Some(index) = index(&row).filter(|index| *index < requested.len()) else {
            continue;
        };
        statuses[plan_of[index]].insert(requested[index].1.clone(), status(row));
    }
    Ok(statuses)
}

/// Positions from `WITH ORDINALITY` start at 1.
fn index(row: &Row) -> Option<usize> {
    usize::try_from(row.0 - 1).ok()
}

fn status((_, recorded_at, readable_at, code, attempt): Row) -> Status {
    let version = |(recorded_at, readable_at): (Timestamp, Timestamp)| Version {
        recorded_at,
        readable_at,
        code: code.unwrap_or_default(),
    };
    Status {
        promoted: recorded_at.zip(readable_at).map(version),
        failed: attempt == TaskState::Failed.code(),
    }
}

/// Limit for the partitions that a deployment counts. Beyond it the exact number does not matter to
/// the user and would take too long.
const COUNTED_MAX: i64 = 200_000;

/// Counts the partitions of these assets whose data was made by another code version than the one
/// given with each asset, among at most `COUNTED_MAX` partitions.
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

/// Partitions that one statement reads.
const PARTITIONS_PER_READ: i64 = 20_000;

/// Keys, times of the versions, whether the code is the same, states of the newest attempts, and
/// whether their outputs are quarantined. All are `None` without rows.
type Columns = (
    Option<Vec<String>>,
    Option<Vec<Option<Timestamp>>>,
    Option<Vec<bool>>,
    Option<Vec<i16>>,
    Option<Vec<bool>>,
);

/// Calls `each` with every partition of an asset that was ever attempted, including those that no
/// longer exist.
pub(crate) async fn of_asset(
    tx: &mut Tx,
    scope: &Scope,
    asset: &str,
    code_version: &str,
    mut each: impl FnMut(&str, AttemptedPartition),
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
        let Some((Some(keys), Some(recorded), Some(same_code), Some(attempts), Some(quarantined))) =
            columns.into_iter().next()
        else {
            return Ok(());
        };
        for (index, key) in keys.iter().enumerate() {
            let promoted = recorded[index].map(|recorded_at| PromotedVersion {
                recorded_at,
                readable_at: approved.get(key).copied().unwrap_or(recorded_at),
                same_code: same_code[index],
            });
            let failed = attempts[index] == TaskState::Failed.code();
            each(
                key,
                AttemptedPartition {
                    promoted,
                    failed,
                    quarantined: quarantined[index],
                },
            );
        }
        if (keys.len() as i64) < PARTITIONS_PER_READ {
            return Ok(());
        }
        // The smallest text greater than the last key, because Postgres text cannot contain NUL.
        from = keys.into_iter().max().unwrap_or_default() + "\u{1}";
    }
}

/// Returns when each approved version became readable, by partition.
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
