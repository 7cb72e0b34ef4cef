//! Limits set by tenants, and the lock on a tenant's settings.

use std::collections::BTreeMap;

use prost::Message;
use servo_model::TenantScope;
use servo_proto::v1::QuotaLimits;
use servo_store::{LoopStore, StoreError, Tx, query};

use super::{decode, from_column, scoped, to_column};

pub(crate) async fn lock(tx: &mut Tx, tenant: &TenantScope) -> Result<(), StoreError> {
    tx.execute(scoped!("lock_tenant", tenant)).await.map(drop)
}

/// Returns version 0 and empty limits for a tenant without a row.
pub(crate) async fn find(
    tx: &mut Tx,
    tenant: &TenantScope,
) -> Result<(u64, QuotaLimits), StoreError> {
    let row: Option<(i64, Vec<u8>)> = tx.optional(scoped!("find_quota", tenant)).await?;
    row.map_or(Ok((0, QuotaLimits::default())), |(version, limits)| {
        Ok((from_column(version), decode(&limits)?))
    })
}

pub(crate) async fn upsert(
    tx: &mut Tx,
    tenant: &TenantScope,
    version: u64,
    limits: &QuotaLimits,
) -> Result<(), StoreError> {
    let statement = scoped!("upsert_quota", tenant)
        .bind(to_column(version))
        .bind(limits.encode_to_vec());
    tx.execute(statement).await.map(drop)
}

/// Returns the limits that these tenants, or all, have set.
pub(crate) async fn load_limits(
    store: &LoopStore,
    tenants: Option<&[TenantScope]>,
) -> Result<BTreeMap<TenantScope, QuotaLimits>, StoreError> {
    let statement = query(include_str!("sql/load_limits.sql")).bind(tenants);
    let rows: Vec<(TenantScope, Option<Vec<u8>>)> = store.all(statement).await?;
    let read = |(tenant, limits): (TenantScope, Option<Vec<u8>>)| {
        Ok((
            tenant,
            limits.map_or(Ok(QuotaLimits::default()), |limits| decode(&limits))?,
        ))
    };
    rows.into_iter().map(read).collect()
}
