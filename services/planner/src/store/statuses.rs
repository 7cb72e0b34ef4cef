//! What the scheduler knows of partitions, read by grant.

use servo_model::states::TaskState;
use servo_store::{LoopStore, StoreError, Timestamp, Tx, query};

use super::Scope;
use crate::core::freshness::{Place, Status, Statuses};

type Row = (i64, Option<Timestamp>, Option<String>, i16);

macro_rules! select {
    ($wanted:expr) => {
        query(include_str!("sql/partition_statuses.sql"))
            .bind($wanted.iter().map(|(scope, _)| scope.tenant.as_str()).collect::<Vec<_>>())
            .bind($wanted.iter().map(|(scope, _)| scope.workspace.as_str()).collect::<Vec<_>>())
            .bind($wanted.iter().map(|(_, place)| place.0.as_str()).collect::<Vec<_>>())
            .bind($wanted.iter().map(|(_, place)| place.1.as_str()).collect::<Vec<_>>())
    };
}

/// Of one plan.
pub(crate) async fn of_one(tx: &mut Tx, scope: &Scope, places: &[Place]) -> Result<Statuses, StoreError> {
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
        let Some(index) = index(&row).filter(|index| *index < wanted.len()) else { continue };
        statuses[plan_of[index]].insert(wanted[index].1.clone(), status(row));
    }
    Ok(statuses)
}

/// Postgres counts from 1.
fn index(row: &Row) -> Option<usize> {
    usize::try_from(row.0 - 1).ok()
}

fn status((_, made_at, code, attempt): Row) -> Status {
    Status {
        made: made_at.map(|at| (at.unix_us(), code.unwrap_or_default())),
        failed: attempt == TaskState::Failed.code(),
    }
}
