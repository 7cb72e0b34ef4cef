//! GetPool: one pool, and who holds its slots.

use servo_mesh::{Error, Reason};
use servo_proto::v1::{CountUseResponse, GetPoolRequest, GetPoolResponse, Pool};
use servo_store::Tx;

use super::context::{Quota, stored, tenant};
use crate::store::pools::{self, PoolRow};

pub(super) async fn get_pool(
    quota: &Quota,
    request: GetPoolRequest,
) -> Result<GetPoolResponse, Error> {
    let tenant = tenant(&request.tenant)?;
    let mut tx = quota.begin(&tenant).await?;
    let row = existing(&mut tx, &tenant, &request.pool).await?;
    // Nobody holds a connection while others are asked.
    drop(tx);
    let counted = quota.count_use(&tenant, &request.pool).await;
    let pool = with_use(row.pool, counted.as_ref());
    let holders = counted.map(|counted| counted.holders).unwrap_or_default();
    Ok(GetPoolResponse {
        pool: Some(pool),
        holders,
    })
}

/// A pool as it is read, with the slots that are taken as far as it is known.
pub(super) fn with_use(pool: Pool, counted: Option<&CountUseResponse>) -> Pool {
    let taken = counted.map(|counted| counted.pool_slots.get(&pool.pool).copied().unwrap_or(0));
    Pool {
        used_slots: taken.unwrap_or(0),
        use_unknown: taken.is_none(),
        ..pool
    }
}

/// A text that cannot be a pool's name names no pool either.
pub(super) async fn existing(tx: &mut Tx, tenant: &str, pool: &str) -> Result<PoolRow, Error> {
    let found = match pool.contains('\0') {
        true => None,
        false => pools::find(tx, tenant, pool).await.map_err(stored)?,
    };
    found.filter(|row| !row.deleted).ok_or_else(|| {
        Error::new(
            Reason::PoolNotFound,
            format!("there is no pool `{}`", pool.escape_debug()),
        )
    })
}
