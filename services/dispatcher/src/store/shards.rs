//! Admission shards.

use servo_model::{AdmissionShard, Position, ShardId, Stream};
use servo_store::{LoopStore, StoreError, TenantTx, query};

/// Returns shard, head and watermark of every admission shard.
pub(crate) async fn heads(
    loops: &LoopStore,
) -> Result<Vec<(ShardId, Position, Position)>, StoreError> {
    loops
        .all(query(include_str!("heads.sql")).bind(Stream::Dispatch.code()))
        .await
}

/// Returns the address of an admission shard's holder.
pub(crate) async fn holder(
    tx: &mut TenantTx,
    shard: AdmissionShard,
) -> Result<Option<String>, StoreError> {
    let holder: Option<(String,)> = tx
        .optional(
            query(include_str!("holder.sql"))
                .bind(Stream::Dispatch.code())
                .bind(shard),
        )
        .await?;
    Ok(holder.map(|(address,)| address))
}
