//! Partition rows.

use std::collections::HashSet;

use servo_model::{TenantId, Timestamp};
use servo_store::sqlx::FromRow;
use servo_store::{LoopStore, StoreError, TenantTx, query};
use uuid::Uuid;

/// An asset key and a partition key.
pub(crate) type AssetPartition = (String, String);

/// The stored facts about a partition, as lists show them.
#[derive(Debug, FromRow)]
pub(crate) struct ListedPartition {
    pub asset_key: String,
    pub partition_key: String,
    /// The newest attempt.
    pub attempt_id: Uuid,
    pub attempted_at: Timestamp,
    pub attempt_state: i16,
    /// The promoted materialization.
    pub materialization_id: Option<Uuid>,
    pub materialized_at: Option<Timestamp>,
    pub code_version: Option<String>,
    pub attempt_run_id: Option<Uuid>,
    pub materialized_run_id: Option<Uuid>,
    /// The state of the newest attempt's materialization.
    pub newest_state: Option<i16>,
}

pub(crate) async fn list(
    tx: &mut TenantTx,
    (tenant, workspace): (&TenantId, &str),
    assets: Vec<&str>,
    partitions: Vec<&str>,
) -> Result<Vec<ListedPartition>, StoreError> {
    let select = query(include_str!("list_partitions.sql"))
        .bind(tenant)
        .bind(workspace)
        .bind(assets)
        .bind(partitions);
    tx.all(select).await
}

/// A row of `scheduler.partitions`.
#[derive(Debug, FromRow)]
pub(crate) struct PartitionRow {
    pub asset_key: String,
    pub partition_key: String,
    pub attempt_id: Uuid,
    pub attempted_at: Timestamp,
    pub attempt_run: i64,
    pub attempt_state: i16,
    pub materialization_id: Option<Uuid>,
    pub materialized_at: Option<Timestamp>,
    pub materialized_run: Option<i64>,
    pub code_version: Option<String>,
}

pub(crate) async fn list_rows(
    loops: &LoopStore,
    (tenant, workspace): (&TenantId, &str),
    keys: &[&AssetPartition],
) -> Result<Vec<PartitionRow>, StoreError> {
    let assets: Vec<&str> = keys.iter().map(|(asset, _)| asset.as_str()).collect();
    let partitions: Vec<&str> = keys.iter().map(|(_, key)| key.as_str()).collect();
    let select = query(include_str!("verify_partitions.sql"))
        .bind(tenant)
        .bind(workspace)
        .bind(assets)
        .bind(partitions);
    loops.all(select).await
}

/// A partition that an attempt wrote, with the event that reports it.
#[derive(Debug)]
pub(crate) struct WrittenPartition {
    pub event_id: Uuid,
    pub tenant: TenantId,
    pub workspace: String,
    pub asset_key: String,
    pub partition_key: String,
}

/// Lists the events with a partition that has no promoted materialization.
pub(crate) async fn list_events_without_version(
    loops: &LoopStore,
    written: &[WrittenPartition],
) -> Result<HashSet<Uuid>, StoreError> {
    let column =
        |field: fn(&WrittenPartition) -> &str| -> Vec<&str> { written.iter().map(field).collect() };
    let events: Vec<Uuid> = written.iter().map(|output| output.event_id).collect();
    let select = query(include_str!("events_without_version.sql"))
        .bind(events)
        .bind(column(|output| output.tenant.as_str()))
        .bind(column(|output| &output.workspace))
        .bind(column(|output| &output.asset_key))
        .bind(column(|output| &output.partition_key));
    let rows: Vec<(Uuid,)> = loops.all(select).await?;
    Ok(rows.into_iter().map(|(event_id,)| event_id).collect())
}
