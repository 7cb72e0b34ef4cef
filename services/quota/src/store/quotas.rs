//! Limits as tenants set them, and the lock on a tenant's settings.

use prost::Message;
use servo_proto::v1::QuotaLimits;
use servo_store::{StoreError, Tx};

use super::{column, count, decoded, scoped};

pub(crate) async fn lock(tx: &mut Tx, tenant: &str) -> Result<(), StoreError> {
    tx.execute(scoped!("lock_tenant", tenant)).await.map(drop)
}

/// Version 0 and nothing set for a tenant without a row.
pub(crate) async fn find(tx: &mut Tx, tenant: &str) -> Result<(u64, QuotaLimits), StoreError> {
    let row: Option<(i64, Vec<u8>)> = tx.optional(scoped!("find_quota", tenant)).await?;
    row.map_or(Ok((0, QuotaLimits::default())), |(version, limits)| {
        Ok((count(version), decoded(&limits)?))
    })
}

pub(crate) async fn keep(
    tx: &mut Tx,
    tenant: &str,
    version: u64,
    limits: &QuotaLimits,
) -> Result<(), StoreError> {
    let statement = scoped!("keep_quota", tenant)
        .bind(column(version))
        .bind(limits.encode_to_vec());
    tx.execute(statement).await.map(drop)
}
