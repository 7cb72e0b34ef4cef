//! GetPool: one pool.

use servo_mesh::{Error, Reason};
use servo_proto::v1::{GetPoolRequest, GetPoolResponse};
use servo_store::Tx;

use super::context::{Quota, stored, tenant};
use crate::store::pools::{self, PoolRow};

pub(super) async fn get_pool(quota: &Quota, request: GetPoolRequest) -> Result<GetPoolResponse, Error> {
    let tenant = tenant(&request.tenant)?;
    let mut tx = quota.begin(&tenant).await?;
    let row = existing(&mut tx, &tenant, &request.pool).await?;
    Ok(GetPoolResponse { pool: Some(row.pool), holders: Vec::new() })
}

/// A text that cannot be a pool's name names no pool either.
pub(super) async fn existing(tx: &mut Tx, tenant: &str, pool: &str) -> Result<PoolRow, Error> {
    let found = match pool.contains('\0') {
        true => None,
        false => pools::find(tx, tenant, pool).await.map_err(stored)?,
    };
    found.filter(|row| !row.deleted).ok_or_else(|| {
        Error::new(Reason::PoolNotFound, format!("there is no pool `{}`", pool.escape_debug()))
    })
}
