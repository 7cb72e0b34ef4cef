//! CreatePool: creates a named pool of slots.

use prost::Message;
use servo_mesh::{Caller, Error, Reason};
use servo_model::TenantId;
use servo_proto::v1::{CreatePoolRequest, CreatePoolResponse, Pool, QuotaChanged, quota_changed};

use super::Quota;
use super::support::change::{Begun, Change, ChangeRequest, begin};
use super::support::errors::{field_error, store_error};
use super::support::parse::parse_tenant;
use crate::core::pools::{POOLS_PER_TENANT_MAX, check as check_pool};
use crate::store::pools::{self, PoolRow};

pub(super) async fn create_pool(
    quota: &Quota,
    caller: &Caller,
    request: CreatePoolRequest,
) -> Result<CreatePoolResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    let change_request = ChangeRequest {
        method: "CreatePool",
        caller,
        tenant: (&tenant).into(),
        request_id: &request.request_id,
        comment: &request.comment,
        body: request.encode_to_vec(),
    };
    let requested = request
        .pool
        .clone()
        .ok_or_else(|| Error::bad_field("pool", "is missing"))?;
    check_pool(&requested).map_err(field_error)?;
    let mut change = match begin(quota, change_request).await? {
        Begun::Answered(answer) => return Ok(answer),
        Begun::Open(change) => change,
    };
    let version = free_version(&mut change, &tenant, &requested.pool).await?;
    let row = PoolRow {
        pool: Pool {
            version,
            used_slots: 0,
            use_unknown: false,
            ..requested
        },
        deleted: false,
    };
    pools::upsert(&mut change.tx, &tenant, &row)
        .await
        .map_err(store_error)?;
    let pool = row.pool.clone();
    let answer = |accepted_event_id| CreatePoolResponse {
        pool: Some(pool),
        accepted_event_id,
    };
    change
        .finish(&pool_subject(&row.pool.pool), pool_changed(row), answer)
        .await
}

/// Returns the version of a new pool: 1, or one more than that of a deleted pool of the same name.
async fn free_version(
    change: &mut Change<'_>,
    tenant: &TenantId,
    name: &str,
) -> Result<u64, Error> {
    let found = pools::find(&mut change.tx, tenant, name)
        .await
        .map_err(store_error)?;
    if found.as_ref().is_some_and(|row| !row.deleted) {
        let message = format!("there is a pool `{name}` already; change it with UpdatePool");
        return Err(Error::new(Reason::AlreadyExists, message));
    }
    let count = pools::count_existing(&mut change.tx, tenant)
        .await
        .map_err(store_error)?;
    if count >= POOLS_PER_TENANT_MAX {
        let sentence = format!("has {count} pools; at most {POOLS_PER_TENANT_MAX} are allowed");
        let message = format!("the tenant {sentence}; delete one first");
        return Err(Error::new(Reason::QuotaExceeded, message).over_quota("pools", sentence));
    }
    Ok(found.map_or(0, |row| row.pool.version) + 1)
}

/// Returns the subject of a pool's events; versions count per subject.
pub(super) fn pool_subject(pool: &str) -> String {
    format!("pool:{pool}")
}

pub(super) fn pool_changed(row: PoolRow) -> QuotaChanged {
    QuotaChanged {
        version: row.pool.version,
        deleted: row.deleted,
        setting: Some(quota_changed::Setting::Pool(row.pool)),
        ..Default::default()
    }
}
