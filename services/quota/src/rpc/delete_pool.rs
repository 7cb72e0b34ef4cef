//! DeletePool: deletes a pool that no current deployment uses.

use prost::Message;
use servo_mesh::{Caller, Error, Reason};
use servo_model::TenantId;
use servo_proto::v1::{DeletePoolRequest, DeletePoolResponse, Pool};

use super::Quota;
use super::create_pool::{pool_changed, pool_subject};
use super::get_pool::existing_pool;
use super::support::change::{Begun, Change, ChangeRequest, begin, next_version};
use super::support::errors::store_error;
use super::support::parse::parse_tenant;
use crate::core::pools::first_user;
use crate::store::pools::PoolRow;
use crate::store::{manifests, pools};

pub(super) async fn delete_pool(
    quota: &Quota,
    caller: &Caller,
    request: DeletePoolRequest,
) -> Result<DeletePoolResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    let change_request = ChangeRequest {
        method: "DeletePool",
        caller,
        tenant: (&tenant).into(),
        request_id: &request.request_id,
        comment: &request.comment,
        body: request.encode_to_vec(),
    };
    let mut change = match begin(quota, change_request).await? {
        Begun::Answered(answer) => return Ok(answer),
        Begun::Open(change) => change,
    };
    let current = existing_pool(&mut change.tx, &tenant, &request.pool)
        .await?
        .pool;
    let version = next_version(request.expected_version, current.version)?;
    refuse_in_use(&mut change, &tenant, &request.pool).await?;
    let row = PoolRow {
        pool: Pool { version, ..current },
        deleted: true,
    };
    pools::upsert(&mut change.tx, &tenant, &row)
        .await
        .map_err(store_error)?;
    let answer = |accepted_event_id| DeletePoolResponse { accepted_event_id };
    change
        .finish(&pool_subject(&request.pool), pool_changed(row), answer)
        .await
}

async fn refuse_in_use(
    change: &mut Change<'_>,
    tenant: &TenantId,
    pool: &str,
) -> Result<(), Error> {
    let manifests = manifests::current(&mut change.tx, tenant)
        .await
        .map_err(store_error)?;
    match first_user(&manifests, pool) {
        None => Ok(()),
        Some((workspace, asset)) => {
            let message = format!(
                "the asset `{asset}` of workspace `{workspace}` uses the pool `{pool}`; deploy without it first"
            );
            Err(Error::new(Reason::InUse, message)
                .with("workspace", workspace)
                .with("asset", asset))
        }
    }
}
