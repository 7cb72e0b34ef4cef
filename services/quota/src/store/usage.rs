//! Statements of the usage loop.

use std::collections::{BTreeMap, HashMap};

use servo_model::{EventType, Position, ShardId, Stream, TenantId, TenantScope, Timestamp};
use servo_proto::v1::{Plan, PriceList};
use servo_store::{LoopStore, StoreError, Tx, query};
use uuid::Uuid;

use super::decode;
use crate::core::usage::{UsageKey, UsageSums};

/// Positions of one shard that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) shard: ShardId,
    pub(crate) after: Position,
    pub(crate) until: Position,
}

/// A row of an outcome event: tenant, workspace, time and payload.
pub(crate) type FinishedRow = (TenantId, String, Timestamp, Vec<u8>);

pub(crate) async fn read_cursors(
    store: &LoopStore,
) -> Result<HashMap<ShardId, Position>, StoreError> {
    let rows: Vec<(ShardId, Position)> = store
        .all(query(include_str!("sql/read_cursors.sql")))
        .await?;
    Ok(rows.into_iter().collect())
}

pub(crate) async fn finished_attempts(
    store: &LoopStore,
    spans: &[Span],
) -> Result<Vec<FinishedRow>, StoreError> {
    let statement = query(include_str!("sql/finished_attempts.sql"))
        .bind(Stream::Execution.code())
        .bind(EventType::TaskFinished.code())
        .bind(column_of(spans, |span| span.shard))
        .bind(column_of(spans, |span| span.after))
        .bind(column_of(spans, |span| span.until));
    store.all(statement).await
}

/// Returns false when another instance moved a cursor concurrently.
pub(crate) async fn move_cursors(tx: &mut Tx, spans: &[Span]) -> Result<bool, StoreError> {
    let statement = query(include_str!("sql/move_cursors.sql"))
        .bind(column_of(spans, |span| span.shard))
        .bind(column_of(spans, |span| span.after))
        .bind(column_of(spans, |span| span.until));
    Ok(usize::try_from(tx.execute(statement).await?).ok() == Some(spans.len()))
}

/// The primary key of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PlanRef {
    pub(crate) tenant: TenantId,
    pub(crate) workspace: String,
    pub(crate) plan_id: Vec<u8>,
}

pub(crate) async fn plans_of_runs(
    store: &LoopStore,
    runs: &[Uuid],
) -> Result<HashMap<Uuid, PlanRef>, StoreError> {
    let rows: Vec<(Uuid, TenantId, String, Vec<u8>)> = store
        .all(query(include_str!("sql/plans_of_runs.sql")).bind(runs))
        .await?;
    let read = |(run, tenant, workspace, plan_id)| {
        (
            run,
            PlanRef {
                tenant,
                workspace,
                plan_id,
            },
        )
    };
    Ok(rows.into_iter().map(read).collect())
}

pub(crate) async fn find_plans(
    store: &LoopStore,
    plans: &[PlanRef],
) -> Result<Vec<(Vec<u8>, Plan)>, StoreError> {
    let statement = query(include_str!("sql/find_plans.sql"))
        .bind(column_of(plans, |plan| plan.tenant.clone()))
        .bind(column_of(plans, |plan| plan.workspace.clone()))
        .bind(column_of(plans, |plan| plan.plan_id.clone()));
    let rows: Vec<(Vec<u8>, Vec<u8>)> = store.all(statement).await?;
    rows.into_iter()
        .map(|(id, plan)| Ok((id, decode(&plan)?)))
        .collect()
}

pub(crate) async fn load_prices(
    store: &LoopStore,
    tenants: &[TenantScope],
) -> Result<HashMap<TenantScope, PriceList>, StoreError> {
    let rows: Vec<(TenantScope, Vec<u8>)> = store
        .all(query(include_str!("sql/load_prices.sql")).bind(tenants))
        .await?;
    rows.into_iter()
        .map(|(tenant, prices)| Ok((tenant, decode(&prices)?)))
        .collect()
}

pub(crate) async fn add(
    tx: &mut Tx,
    sums: &BTreeMap<UsageKey, UsageSums>,
) -> Result<(), StoreError> {
    let keys: Vec<&UsageKey> = sums.keys().collect();
    let figures: Vec<&UsageSums> = sums.values().collect();
    let statement = query(include_str!("sql/add_usage.sql"))
        .bind(column_of(&keys, |key| key.tenant.clone()))
        .bind(column_of(&keys, |key| key.hour))
        .bind(column_of(&keys, |key| key.workspace.clone()))
        .bind(column_of(&keys, |key| key.asset.clone()))
        .bind(column_of(&keys, |key| key.pool.clone()))
        .bind(column_of(&keys, |key| key.currency.clone()))
        .bind(column_of(&figures, |sum| sum.attempts))
        .bind(column_of(&figures, |sum| sum.slot_ms))
        .bind(column_of(&figures, |sum| sum.cpu_ms))
        .bind(column_of(&figures, |sum| sum.memory_mb_ms))
        .bind(column_of(&figures, |sum| sum.gpu_ms))
        .bind(column_of(&figures, |sum| sum.memory_peak_bytes))
        .bind(column_of(&figures, |sum| sum.read_bytes))
        .bind(column_of(&figures, |sum| sum.written_bytes))
        .bind(column_of(&figures, |sum| sum.egress_bytes))
        .bind(column_of(&figures, |sum| sum.compute_pico))
        .bind(column_of(&figures, |sum| sum.storage_pico))
        .bind(column_of(&figures, |sum| sum.network_pico))
        .bind(column_of(&figures, |sum| sum.external_pico));
    tx.execute(statement).await.map(drop)
}

fn column_of<T, C>(rows: &[T], field: impl Fn(&T) -> C) -> Vec<C> {
    rows.iter().map(field).collect()
}
