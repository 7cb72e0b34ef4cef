//! UpdateQuota: replaces a tenant's limits, or the platform's defaults.

use prost::Message;
use servo_mesh::{Caller, Error};
use servo_proto::v1::{QuotaChanged, UpdateQuotaRequest, UpdateQuotaResponse, quota_changed};

use super::Quota;
use super::support::change::{Begun, ChangeRequest, begin, next_version};
use super::support::errors::{field_error, store_error};
use super::support::parse::parse_tenant_or_platform;
use crate::core::limits;
use crate::store::quotas;

const SUBJECT: &str = "quota";

pub(super) async fn update_quota(
    quota: &Quota,
    caller: &Caller,
    request: UpdateQuotaRequest,
) -> Result<UpdateQuotaResponse, Error> {
    let tenant = parse_tenant_or_platform(&request.tenant)?;
    let sentence = "is missing; send an empty one to follow all defaults";
    let set = request
        .limits
        .ok_or_else(|| Error::bad_field("limits", sentence))?;
    let inherited = quota.inherited_limits(&tenant).await?;
    let change_request = ChangeRequest {
        method: "UpdateQuota",
        caller,
        tenant,
        request_id: &request.request_id,
        comment: &request.comment,
        body: request.encode_to_vec(),
    };
    let mut change = match begin(quota, change_request).await? {
        Begun::Answered(answer) => return Ok(answer),
        Begun::Open(change) => change,
    };
    limits::check(&set, &inherited).map_err(field_error)?;
    let (current, _) = quotas::find(&mut change.tx, &change.tenant)
        .await
        .map_err(store_error)?;
    let version = next_version(request.expected_version, current)?;
    quotas::upsert(&mut change.tx, &change.tenant, version, &set)
        .await
        .map_err(store_error)?;
    let changed = QuotaChanged {
        version,
        setting: Some(quota_changed::Setting::Limits(set)),
        ..Default::default()
    };
    let effective = Some(limits::effective(&set, &inherited));
    let answer = |accepted_event_id| UpdateQuotaResponse {
        effective,
        version,
        accepted_event_id,
    };
    change.finish(SUBJECT, changed, answer).await
}
