//! Living instances of the dispatcher.

use std::time::Duration;

use servo_store::{LoopStore, StoreError, query};

/// Records that this instance is alive and returns the number of living instances.
pub(crate) async fn note_instance(
    loops: &LoopStore,
    instance: &str,
    ttl: Duration,
) -> Result<i64, StoreError> {
    let rows: Vec<(i64,)> = loops
        .all(
            query(include_str!("note_instance.sql"))
                .bind(instance.to_owned())
                .bind(ttl),
        )
        .await?;
    Ok(rows.first().map_or(1, |(count,)| *count))
}

pub(crate) async fn forget_instance(loops: &LoopStore, instance: &str) -> Result<(), StoreError> {
    loops
        .execute(query(include_str!("forget_instance.sql")).bind(instance.to_owned()))
        .await?;
    Ok(())
}
