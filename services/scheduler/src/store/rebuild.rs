//! Emptying the projections before they are folded again.
//!
//! Each statement runs in a transaction with a long statement timeout, because it may touch a whole
//! table and no caller waits for it.

use servo_model::{Position, ShardId, Stream};
use servo_store::sqlx::AssertSqlSafe;
use servo_store::{FromAnyRow, Lease, LoopStore, LoopTx, StoreError, query};

use super::Statement;

/// The leases of the rebuild are renewed while a statement runs.
const STATEMENT_TIMEOUT: &str = "1h";

async fn set_statement_timeout(tx: &mut LoopTx) -> Result<(), StoreError> {
    tx.execute(query(include_str!("set_statement_timeout.sql")).bind(STATEMENT_TIMEOUT))
        .await?;
    Ok(())
}

async fn run_long<T: FromAnyRow>(
    loops: &LoopStore,
    statement: Statement<'_>,
) -> Result<Vec<T>, StoreError> {
    let mut tx = loops.begin().await?;
    set_statement_timeout(&mut tx).await?;
    let rows = tx.all(statement).await?;
    tx.commit().await?;
    Ok(rows)
}

/// Sets a shard's watermark back and returns the position before its first event.
pub(crate) async fn rewind(loops: &LoopStore, lease: &Lease) -> Result<Position, StoreError> {
    let rewind = query(include_str!("rewind.sql"))
        .bind(Stream::Execution.code())
        .bind(lease.shard())
        .bind(lease.epoch())
        .bind(lease.holder());
    let rewound: Vec<(Position,)> = run_long(loops, rewind).await?;
    Ok(rewound
        .first()
        .map_or(Position::START, |(position,)| *position))
}

/// Deletes the materializations of each shard's runs from its first run number on.
pub(crate) async fn delete_materializations(
    loops: &LoopStore,
    shards: Vec<ShardId>,
    first_numbers: &[i64],
) -> Result<(), StoreError> {
    let delete = query(include_str!("delete_materializations.sql"))
        .bind(shards)
        .bind(first_numbers)
        .bind(i64::from(Stream::Execution.shard_count()));
    run_long::<()>(loops, delete).await.map(drop)
}

pub(crate) async fn delete_partitions(loops: &LoopStore) -> Result<(), StoreError> {
    run_long::<()>(loops, query(include_str!("delete_partitions.sql")))
        .await
        .map(drop)
}

/// Deletes up to `limit` runs of a shard from a run number on, and returns the last number of them.
pub(crate) async fn delete_runs(
    loops: &LoopStore,
    shard: ShardId,
    first_number: i64,
    limit: i64,
) -> Result<Option<i64>, StoreError> {
    let delete = query(include_str!("delete_runs.sql"))
        .bind(shard)
        .bind(first_number)
        .bind(limit);
    let deleted: Vec<(Option<i64>,)> = run_long(loops, delete).await?;
    Ok(deleted.first().and_then(|(last,)| *last))
}

/// How many rows a table has, and a hash of all of them.
pub(crate) async fn digest(
    loops: &LoopStore,
    table: &str,
) -> Result<Option<(i64, String)>, StoreError> {
    let select =
        include_str!("digest.sql").replace("scheduler.runs", &format!("scheduler.{table}"));
    let rows: Vec<(i64, String)> = run_long(loops, query(AssertSqlSafe(select))).await?;
    Ok(rows.into_iter().next())
}
