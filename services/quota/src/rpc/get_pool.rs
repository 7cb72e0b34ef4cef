//! GetPool: returns a pool and the holders of its slots.

use servo_mesh::{Error, Reason};
use servo_model::TenantId;
use servo_proto::mesh::v1::CountUseResponse;
use servo_proto::v1::{GetPoolRequest, GetPoolResponse, Pool};
use servo_store::Tx;

use super::Quota;
use super::support::errors::store_error;
use super::support::parse::parse_tenant;
use crate::store::pools::{self, PoolRow};

pub(super) async fn get_pool(
    quota: &Quota,
    request: GetPoolRequest,
) -> Result<GetPoolResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    let mut tx = quota.begin(&tenant).await?;
    let row = existing_pool(&mut tx, &tenant, &request.pool).await?;
    // Releases the connection before calling other services.
    drop(tx);
    let counted = quota.count_use(&tenant, &request.pool).await;
    let pool = with_use(row.pool, counted.as_ref());
    let holders = counted.map(|counted| counted.holders).unwrap_or_default();
    Ok(GetPoolResponse {
        pool: Some(pool),
        holders,
    })
}

/// Adds the slots that are taken to a pool, if they are known.
pub(super) fn with_use(pool: Pool, counted: Option<&CountUseResponse>) -> Pool {
    let taken = counted.map(|counted| counted.pool_slots.get(&pool.pool).copied().unwrap_or(0));
    Pool {
        used_slots: taken.unwrap_or(0),
        use_unknown: taken.is_none(),
        ..pool
    }
}

/// Fails with POOL_NOT_FOUND, also for a text that cannot be a name.
pub(super) async fn existing_pool(
    tx: &mut Tx,
    tenant: &TenantId,
    pool: &str,
) -> Result<PoolRow, Error> {
    let found = if pool.contains('\0') {
        None
    } else {
        pools::find(tx, tenant, pool).await.map_err(store_error)?
    };
    found.filter(|row| !row.deleted).ok_or_else(|| {
        Error::new(
            Reason::PoolNotFound,
            format!("there is no pool `{}`", pool.escape_debug()),
        )
    })
}
