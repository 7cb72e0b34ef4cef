//! UpdatePool: other slots for a pool. Fewer than are taken let the surplus run out.

use prost::Message;
use servo_mesh::{Caller, Error};
use servo_proto::v1::{Pool, UpdatePoolRequest, UpdatePoolResponse};

use super::change::{Ask, Begun, begin, next_version};
use super::context::{Quota, bad, stored, tenant};
use super::create_pool::{changed, subject};
use super::get_pool::existing;
use crate::core::text::prose;
use crate::store::pools::{self, PoolRow};

pub(super) async fn update_pool(
    quota: &Quota,
    caller: &Caller,
    request: UpdatePoolRequest,
) -> Result<UpdatePoolResponse, Error> {
    let ask = Ask {
        method: "UpdatePool",
        caller,
        tenant: tenant(&request.tenant)?,
        request_id: &request.request_id,
        comment: &request.comment,
        body: request.encode_to_vec(),
    };
    prose("description", &request.description).map_err(bad)?;
    let mut change = match begin(quota, ask).await? {
        Begun::Answered(answer) => return Ok(answer),
        Begun::Open(change) => change,
    };
    let current = existing(&mut change.tx, &change.tenant, &request.pool)
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
    pools::keep(&mut change.tx, &change.tenant, &row)
        .await
        .map_err(stored)?;
    let answer = |accepted_event_id| UpdatePoolResponse {
        pool: Some(pool),
        accepted_event_id,
    };
    change
        .finish(&subject(&request.pool), changed(row), answer)
        .await
}
