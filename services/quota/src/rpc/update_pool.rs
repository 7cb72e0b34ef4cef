//! UpdatePool: changes the slots of a pool. If more are taken than remain, running attempts finish.

use prost::Message;
use servo_mesh::{Caller, Error};
use servo_proto::v1::{Pool, UpdatePoolRequest, UpdatePoolResponse};

use super::Quota;
use super::create_pool::{pool_changed, pool_subject};
use super::get_pool::existing_pool;
use super::support::change::{Begun, ChangeRequest, begin, next_version};
use super::support::errors::{field_error, store_error};
use super::support::parse::parse_tenant;
use crate::core::text::check_text;
use crate::store::pools::{self, PoolRow};

pub(super) async fn update_pool(
    quota: &Quota,
    caller: &Caller,
    request: UpdatePoolRequest,
) -> Result<UpdatePoolResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    let change_request = ChangeRequest {
        method: "UpdatePool",
        caller,
        tenant: (&tenant).into(),
        request_id: &request.request_id,
        comment: &request.comment,
        body: request.encode_to_vec(),
    };
    check_text("description", &request.description).map_err(field_error)?;
    let mut change = match begin(quota, change_request).await? {
        Begun::Answered(answer) => return Ok(answer),
        Begun::Open(change) => change,
    };
    let current = existing_pool(&mut change.tx, &tenant, &request.pool)
        .await?
        .pool;
    let version = next_version(request.expected_version, current.version)?;
    let pool = Pool {
        slots: request.slots,
        description: request.description.clone(),
        version,
        ..current
    };
    let row = PoolRow {
        pool: pool.clone(),
        deleted: false,
    };
    pools::upsert(&mut change.tx, &tenant, &row)
        .await
        .map_err(store_error)?;
    let answer = |accepted_event_id| UpdatePoolResponse {
        pool: Some(pool),
        accepted_event_id,
    };
    change
        .finish(&pool_subject(&request.pool), pool_changed(row), answer)
        .await
}
