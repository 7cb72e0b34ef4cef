//! DeletePool: a pool that no current deployment names goes.

use prost::Message;
use servo_mesh::{Caller, Error, Reason};
use servo_proto::v1::{DeletePoolRequest, DeletePoolResponse, Pool};

use super::change::{Ask, Begun, Change, begin, next_version};
use super::context::{Quota, stored, tenant};
use super::create_pool::{changed, subject};
use super::get_pool::existing;
use crate::core::pools::first_user;
use crate::store::pools::PoolRow;
use crate::store::{deployed, pools};

pub(super) async fn delete_pool(
    quota: &Quota,
    caller: &Caller,
    request: DeletePoolRequest,
) -> Result<DeletePoolResponse, Error> {
    let ask = Ask {
        method: "DeletePool",
        caller,
        tenant: tenant(&request.tenant)?,
        request_id: &request.request_id,
        comment: &request.comment,
        body: request.encode_to_vec(),
    };
    let mut change = match begin(quota, ask).await? {
        Begun::Answered(answer) => return Ok(answer),
        Begun::Open(change) => change,
    };
    let current = existing(&mut change.tx, &change.tenant, &request.pool)
        .await?
        .pool;
    let version = next_version(request.expected_version, current.version)?;
    refuse_in_use(&mut change, &request.pool).await?;
    let row = PoolRow {
        pool: Pool { version, ..current },
        deleted: true,
    };
    pools::keep(&mut change.tx, &change.tenant, &row)
        .await
        .map_err(stored)?;
    let answer = |accepted_event_id| DeletePoolResponse { accepted_event_id };
    change
        .finish(&subject(&request.pool), changed(row), answer)
        .await
}

async fn refuse_in_use(change: &mut Change<'_>, pool: &str) -> Result<(), Error> {
    let manifests = deployed::manifests(&mut change.tx, &change.tenant)
        .await
        .map_err(stored)?;
    match first_user(&manifests, pool) {
        None => Ok(()),
        Some((workspace, asset)) => {
            let message = format!(
                "the asset `{asset}` of workspace `{workspace}` takes its slots from pool `{pool}`; deploy without it first"
            );
            Err(Error::new(Reason::InUse, message)
                .with("workspace", workspace)
                .with("asset", asset))
        }
    }
}
