//! Retention of the ledger.

use servo_store::{LoopStore, StoreError, query};

/// Creates the ledger partitions of the next days.
pub(crate) async fn create_partitions(loops: &LoopStore, days: i32) -> Result<(), StoreError> {
    loops
        .execute(query(include_str!("create_partitions.sql")).bind(days))
        .await?;
    Ok(())
}

/// Deletes up to `limit` expired idempotency keys, and returns how many.
pub(crate) async fn expire_keys(loops: &LoopStore, limit: i32) -> Result<i64, StoreError> {
    let rows: Vec<(i64,)> = loops
        .all(query(include_str!("expire_keys.sql")).bind(limit))
        .await?;
    Ok(rows.first().map_or(0, |(count,)| *count))
}
