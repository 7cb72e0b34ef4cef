//! UpdateQuota: replaces a tenant's limits, or the platform's defaults.

use prost::Message;
use servo_mesh::{Caller, Error};
use servo_proto::v1::{QuotaChanged, UpdateQuotaRequest, UpdateQuotaResponse, quota_changed};

use super::change::{Ask, Begun, begin, next_version};
use super::context::{Quota, bad, stored, tenant_or_platform};
use crate::core::limits;
use crate::store::quotas;

const SUBJECT: &str = "quota";

pub(super) async fn update_quota(
    quota: &Quota,
    caller: &Caller,
    request: UpdateQuotaRequest,
) -> Result<UpdateQuotaResponse, Error> {
    let tenant = tenant_or_platform(&request.tenant)?;
    let sentence = "is missing; send an empty one to follow all defaults";
    let set = request
        .limits
        .ok_or_else(|| Error::bad_field("limits", sentence))?;
    let below = quota.below(&tenant).await?;
    let ask = Ask {
        method: "UpdateQuota",
        caller,
        tenant,
        request_id: &request.request_id,
        comment: &request.comment,
        body: request.encode_to_vec(),
    };
    let mut change = match begin(quota, ask).await? {
        Begun::Answered(answer) => return Ok(answer),
        Begun::Open(change) => change,
    };
    limits::check(&set, &below).map_err(bad)?;
    let (current, _) = quotas::find(&mut change.tx, &change.tenant)
        .await
        .map_err(stored)?;
    let version = next_version(request.expected_version, current)?;
    quotas::keep(&mut change.tx, &change.tenant, version, &set)
        .await
        .map_err(stored)?;
    let changed = QuotaChanged {
        version,
        setting: Some(quota_changed::Setting::Limits(set)),
        ..Default::default()
    };
    let effective = Some(limits::effective(&set, &below));
    let answer = |accepted_event_id| UpdateQuotaResponse {
        effective,
        version,
        accepted_event_id,
    };
    change.finish(SUBJECT, changed, answer).await
}
