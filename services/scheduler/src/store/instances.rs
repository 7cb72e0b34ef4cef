//! The living instances of the scheduler, by which the shards are shared out.

use std::time::Duration;

use servo_store::{LoopStore, StoreError, query};

/// Registers an instance as alive and returns how many instances are.
pub(crate) async fn register(
    loops: &LoopStore,
    holder: &str,
    address: &str,
    ttl: Duration,
) -> Result<usize, StoreError> {
    let register = query(include_str!("register_instance.sql"))
        .bind(holder)
        .bind(address)
        .bind(ttl.as_secs_f64());
    let rows: Vec<(i64,)> = loops.all(register).await?;
    Ok(rows
        .first()
        .map_or(1, |(count,)| usize::try_from(*count).unwrap_or(1)))
}

pub(crate) async fn delete(loops: &LoopStore, holder: &str) -> Result<u64, StoreError> {
    loops
        .execute(query(include_str!("delete_instance.sql")).bind(holder))
        .await
}
