//! Named pools of slots.

use std::collections::BTreeMap;

use servo_model::{TenantId, TenantScope};
use servo_proto::v1::Pool;
use servo_store::{LoopStore, StoreError, Tx, query};

use super::{from_column, scoped, to_column};

/// A pool. A deleted one keeps its row, so that its versions continue if it is created again.
#[derive(Debug)]
pub(crate) struct PoolRow {
    pub(crate) pool: Pool,
    pub(crate) deleted: bool,
}

pub(crate) type Columns = (String, i64, i64, String, bool);

impl From<Columns> for PoolRow {
    fn from((pool, version, slots, description, deleted): Columns) -> PoolRow {
        let slots = u32::try_from(slots).unwrap_or(u32::MAX);
        PoolRow {
            pool: Pool {
                pool,
                slots,
                description,
                version: from_column(version),
                ..Pool::default()
            },
            deleted,
        }
    }
}

pub(crate) async fn find(
    tx: &mut Tx,
    tenant: &TenantId,
    pool: &str,
) -> Result<Option<PoolRow>, StoreError> {
    let row: Option<Columns> = tx.optional(scoped!("find_pool", tenant).bind(pool)).await?;
    Ok(row.map(PoolRow::from))
}

pub(crate) async fn list(
    tx: &mut Tx,
    tenant: &TenantId,
    after: &str,
    limit: usize,
) -> Result<Vec<Pool>, StoreError> {
    let statement = scoped!("list_pools", tenant)
        .bind(after)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX));
    let rows: Vec<Columns> = tx.all(statement).await?;
    Ok(rows
        .into_iter()
        .map(|row| PoolRow::from(row).pool)
        .collect())
}

pub(crate) async fn upsert(
    tx: &mut Tx,
    tenant: &TenantId,
    row: &PoolRow,
) -> Result<(), StoreError> {
    let PoolRow { pool, deleted } = row;
    let statement = scoped!("upsert_pool", tenant)
        .bind(&pool.pool)
        .bind(to_column(pool.version))
        .bind(i64::from(pool.slots))
        .bind(&pool.description)
        .bind(deleted);
    tx.execute(statement).await.map(drop)
}

pub(crate) async fn count_existing(tx: &mut Tx, tenant: &TenantId) -> Result<u64, StoreError> {
    let (pools,): (i64,) = tx.one(scoped!("count_pools", tenant)).await?;
    Ok(from_column(pools))
}

/// Returns the pools of these tenants, or of all, by tenant.
pub(crate) async fn load_all(
    store: &LoopStore,
    tenants: Option<&[TenantScope]>,
) -> Result<BTreeMap<TenantId, Vec<Pool>>, StoreError> {
    type Row = (TenantId, String, i64, i64, String, bool);
    let rows: Vec<Row> = store
        .all(query(include_str!("sql/load_pools.sql")).bind(tenants))
        .await?;
    let mut pools: BTreeMap<TenantId, Vec<Pool>> = BTreeMap::new();
    for (tenant, pool, version, slots, description, deleted) in rows {
        let row = PoolRow::from((pool, version, slots, description, deleted));
        pools.entry(tenant).or_default().push(row.pool);
    }
    Ok(pools)
}
