//! The execution shards of the ledger.

use servo_model::{AdmissionShard, Epoch, Position, ShardId, Stream, Timestamp};
use servo_store::sqlx::FromRow;
use servo_store::{Lease, LoopStore, StoreError, TenantTx, query};

/// All execution shards.
pub(crate) fn all_shards() -> Vec<ShardId> {
    Stream::Execution.shards().collect()
}

/// How far a shard is folded, and its holder.
#[derive(Debug, FromRow)]
pub(crate) struct ShardRow {
    pub shard: ShardId,
    pub head: Position,
    pub watermark: Position,
    pub holder: Option<String>,
    pub epoch: Epoch,
}

pub(crate) async fn list(loops: &LoopStore) -> Result<Vec<ShardRow>, StoreError> {
    loops.all(query(include_str!("list_shards.sql"))).await
}

/// A shard whose lease is held, and the database's time.
#[derive(Debug, FromRow)]
pub(crate) struct HeldShard {
    pub watermark: Position,
    pub epoch: Epoch,
    /// When its last event was recorded.
    pub recorded_at: Timestamp,
    pub now: Timestamp,
}

/// Finds the shard of a lease; `None` when the lease is no longer held.
pub(crate) async fn find_held(
    loops: &LoopStore,
    lease: &Lease,
) -> Result<Option<HeldShard>, StoreError> {
    let select = query(include_str!("held_shard.sql"))
        .bind(lease.shard())
        .bind(lease.holder());
    let rows: Vec<HeldShard> = loops.all(select).await?;
    Ok(rows.into_iter().next())
}

/// Lists the shards of a holder that another service appended to.
pub(crate) async fn list_behind(
    loops: &LoopStore,
    holder: &str,
) -> Result<Vec<ShardId>, StoreError> {
    let rows: Vec<(ShardId,)> = loops
        .all(query(include_str!("shards_behind.sql")).bind(holder))
        .await?;
    Ok(rows.into_iter().map(|(shard,)| shard).collect())
}

/// The newest lease epoch of each admission shard.
pub(crate) async fn admission_epochs(
    loops: &LoopStore,
) -> Result<Vec<(AdmissionShard, Epoch)>, StoreError> {
    let select = query(include_str!("admission_epochs.sql")).bind(Stream::Dispatch.code());
    loops.all(select).await
}

pub(crate) async fn watermark(loops: &LoopStore, shard: ShardId) -> Result<Position, StoreError> {
    let rows: Vec<(Position,)> = loops
        .all(query(include_str!("watermark.sql")).bind(shard))
        .await?;
    Ok(rows
        .first()
        .map_or(Position::START, |(watermark,)| *watermark))
}

/// How far a shard is folded, and when Postgres was started.
pub(crate) async fn watermark_and_start(
    tx: &mut TenantTx,
    shard: ShardId,
) -> Result<(Position, Timestamp), StoreError> {
    tx.one(query(include_str!("watermark_and_start.sql")).bind(shard))
        .await
}

/// Records the present start of Postgres and returns the times of all known starts.
pub(crate) async fn postgres_starts(loops: &LoopStore) -> Result<Vec<Timestamp>, StoreError> {
    let rows: Vec<(Timestamp,)> = loops
        .all(query(include_str!("postgres_starts.sql")))
        .await?;
    Ok(rows.into_iter().map(|(start,)| start).collect())
}

/// The database's time.
pub(crate) async fn now(loops: &LoopStore) -> Result<Option<Timestamp>, StoreError> {
    let rows: Vec<(Timestamp,)> = loops.all(query(include_str!("now.sql"))).await?;
    Ok(rows.first().map(|(now,)| *now))
}
