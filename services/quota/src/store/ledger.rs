//! Positions and changes in the ledger.

use servo_model::{Position, ShardId, Stream, TenantScope};
use servo_store::{LoopStore, StoreError, query};

/// Returns the last position of every shard of a stream.
pub(crate) async fn heads(store: &LoopStore, stream: Stream) -> Result<Vec<Position>, StoreError> {
    let rows: Vec<(Position,)> = store
        .all(query(include_str!("sql/read_heads.sql")).bind(stream.code()))
        .await?;
    Ok(rows.into_iter().map(|(head,)| head).collect())
}

/// Returns the tenants whose settings changed after the positions in `after`, up to `heads`.
pub(crate) async fn changed_tenants(
    store: &LoopStore,
    after: &[Position],
    heads: &[Position],
) -> Result<Vec<TenantScope>, StoreError> {
    let shards: Vec<ShardId> = Stream::Quota.shards().collect();
    let statement = query(include_str!("sql/changed_tenants.sql"))
        .bind(Stream::Quota.code())
        .bind(shards)
        .bind(after)
        .bind(heads);
    let rows: Vec<(TenantScope,)> = store.all(statement).await?;
    Ok(rows.into_iter().map(|(tenant,)| tenant).collect())
}
