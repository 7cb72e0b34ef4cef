//! CreatePool: a named pool of slots.

use prost::Message;
use servo_mesh::{Caller, Error, Reason};
use servo_proto::v1::{CreatePoolRequest, CreatePoolResponse, Pool, QuotaChanged, quota_changed};

use super::change::{Ask, Begun, Change, begin};
use super::context::{Quota, bad, stored, tenant};
use crate::core::pools::{POOLS_PER_TENANT_MAX, check};
use crate::store::pools::{self, PoolRow};

pub(super) async fn create_pool(
    quota: &Quota,
    caller: &Caller,
    request: CreatePoolRequest,
) -> Result<CreatePoolResponse, Error> {
    let ask = Ask {
        method: "CreatePool",
        caller,
        tenant: tenant(&request.tenant)?,
        request_id: &request.request_id,
        comment: &request.comment,
        body: request.encode_to_vec(),
    };
    let wanted = request
        .pool
        .clone()
        .ok_or_else(|| Error::bad_field("pool", "is missing"))?;
    check(&wanted).map_err(bad)?;
    let mut change = match begin(quota, ask).await? {
        Begun::Answered(answer) => return Ok(answer),
        Begun::Open(change) => change,
    };
    let version = free_version(&mut change, &wanted.pool).await?;
    let row = PoolRow {
        pool: Pool {
            version,
            used_slots: 0,
            use_unknown: false,
            ..wanted
        },
        deleted: false,
    };
    pools::keep(&mut change.tx, &change.tenant, &row)
        .await
        .map_err(stored)?;
    let pool = row.pool.clone();
    let answer = |accepted_event_id| CreatePoolResponse {
        pool: Some(pool),
        accepted_event_id,
    };
    change
        .finish(&subject(&row.pool.pool), changed(row), answer)
        .await
}

/// The version that a new pool begins with: 1, or one more than that of the pool that had its name.
async fn free_version(change: &mut Change<'_>, name: &str) -> Result<u64, Error> {
    let found = pools::find(&mut change.tx, &change.tenant, name)
        .await
        .map_err(stored)?;
    if found.as_ref().is_some_and(|row| !row.deleted) {
        let message = format!("there is a pool `{name}` already; change it with UpdatePool");
        return Err(Error::new(Reason::AlreadyExists, message));
    }
    let count = pools::how_many(&mut change.tx, &change.tenant)
        .await
        .map_err(stored)?;
    if count >= POOLS_PER_TENANT_MAX {
        let sentence = format!("has {count} pools; at most {POOLS_PER_TENANT_MAX} are allowed");
        let message = format!("the tenant {sentence}; delete one first");
        return Err(Error::new(Reason::QuotaExceeded, message).over_quota("pools", sentence));
    }
    Ok(found.map_or(0, |row| row.pool.version) + 1)
}

/// What the versions of a pool count.
pub(super) fn subject(pool: &str) -> String {
    format!("pool:{pool}")
}

pub(super) fn changed(row: PoolRow) -> QuotaChanged {
    QuotaChanged {
        version: row.pool.version,
        deleted: row.deleted,
        setting: Some(quota_changed::Setting::Pool(row.pool)),
        ..Default::default()
    }
}
