//! What the count of usage reads and writes.

use std::collections::{BTreeMap, HashMap};

use servo_model::{EventType, Stream};
use servo_proto::v1::{Plan, PriceList};
use servo_store::{LoopStore, StoreError, Timestamp, Tx, query};
use uuid::Uuid;

use super::decoded;
use crate::core::usage::{Key, Sums};

/// Positions of one shard that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) shard: i16,
    pub(crate) after: i64,
    pub(crate) until: i64,
}

/// An outcome as the ledger keeps it.
pub(crate) type Finished = (String, String, Timestamp, Vec<u8>);

pub(crate) async fn cursors(store: &LoopStore) -> Result<HashMap<i16, i64>, StoreError> {
    let rows: Vec<(i16, i64)> = store.all(query(include_str!("sql/cursors.sql"))).await?;
    Ok(rows.into_iter().collect())
}

pub(crate) async fn finished(
    store: &LoopStore,
    spans: &[Span],
) -> Result<Vec<Finished>, StoreError> {
    let statement = query(include_str!("sql/finished.sql"))
        .bind(Stream::Execution.code())
        .bind(EventType::TaskFinished.code())
        .bind(column(spans, |span| span.shard))
        .bind(column(spans, |span| span.after))
        .bind(column(spans, |span| span.until));
    store.all(statement).await
}

/// False when another instance moved one of them meanwhile.
pub(crate) async fn move_cursors(tx: &mut Tx, spans: &[Span]) -> Result<bool, StoreError> {
    let statement = query(include_str!("sql/move_cursors.sql"))
        .bind(column(spans, |span| span.shard))
        .bind(column(spans, |span| span.after))
        .bind(column(spans, |span| span.until));
    Ok(usize::try_from(tx.execute(statement).await?).ok() == Some(spans.len()))
}

/// Where a plan lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PlanPlace {
    pub(crate) tenant: String,
    pub(crate) workspace: String,
    pub(crate) plan_id: Vec<u8>,
}

pub(crate) async fn plans_of_runs(
    store: &LoopStore,
    runs: &[Uuid],
) -> Result<HashMap<Uuid, PlanPlace>, StoreError> {
    let rows: Vec<(Uuid, String, String, Vec<u8>)> = store
        .all(query(include_str!("sql/plans_of_runs.sql")).bind(runs))
        .await?;
    let read = |(run, tenant, workspace, plan_id)| {
        (
            run,
            PlanPlace {
                tenant,
                workspace,
                plan_id,
            },
        )
    };
    Ok(rows.into_iter().map(read).collect())
}

pub(crate) async fn plans(
    store: &LoopStore,
    places: &[PlanPlace],
) -> Result<Vec<(Vec<u8>, Plan)>, StoreError> {
    let statement = query(include_str!("sql/find_plans.sql"))
        .bind(column(places, |place| place.tenant.clone()))
        .bind(column(places, |place| place.workspace.clone()))
        .bind(column(places, |place| place.plan_id.clone()));
    let rows: Vec<(Vec<u8>, Vec<u8>)> = store.all(statement).await?;
    rows.into_iter()
        .map(|(id, plan)| Ok((id, decoded(&plan)?)))
        .collect()
}

pub(crate) async fn prices(
    store: &LoopStore,
    tenants: &[String],
) -> Result<HashMap<String, PriceList>, StoreError> {
    let rows: Vec<(String, Vec<u8>)> = store
        .all(query(include_str!("sql/load_prices.sql")).bind(tenants))
        .await?;
    rows.into_iter()
        .map(|(tenant, prices)| Ok((tenant, decoded(&prices)?)))
        .collect()
}

pub(crate) async fn add(tx: &mut Tx, sums: &BTreeMap<Key, Sums>) -> Result<(), StoreError> {
    let keys: Vec<&Key> = sums.keys().collect();
    let figures: Vec<&Sums> = sums.values().collect();
    let statement = query(include_str!("sql/add_usage.sql"))
        .bind(column(&keys, |key| key.tenant.clone()))
        .bind(column(&keys, |key| Timestamp::from_unix_us(key.hour_us)))
        .bind(column(&keys, |key| key.workspace.clone()))
        .bind(column(&keys, |key| key.asset.clone()))
        .bind(column(&keys, |key| key.pool.clone()))
        .bind(column(&keys, |key| key.currency.clone()))
        .bind(column(&figures, |sum| sum.attempts))
        .bind(column(&figures, |sum| sum.slot_ms))
        .bind(column(&figures, |sum| sum.cpu_ms))
        .bind(column(&figures, |sum| sum.memory_mb_ms))
        .bind(column(&figures, |sum| sum.gpu_ms))
        .bind(column(&figures, |sum| sum.memory_peak_bytes))
        .bind(column(&figures, |sum| sum.read_bytes))
        .bind(column(&figures, |sum| sum.written_bytes))
        .bind(column(&figures, |sum| sum.egress_bytes))
        .bind(column(&figures, |sum| sum.compute_pico))
        .bind(column(&figures, |sum| sum.storage_pico))
        .bind(column(&figures, |sum| sum.network_pico))
        .bind(column(&figures, |sum| sum.external_pico));
    tx.execute(statement).await.map(drop)
}

fn column<T, C>(rows: &[T], field: impl Fn(&T) -> C) -> Vec<C> {
    rows.iter().map(field).collect()
}
