//! GetQuota: a tenant's limits as set and as they hold, and what is used of them.

use servo_mesh::Error;
use servo_proto::v1::{GetQuotaRequest, GetQuotaResponse};

use super::context::{Quota, stored, tenant_or_platform};
use crate::core::limits;
use crate::core::picture::PLATFORM;
use crate::store::quotas;

pub(super) async fn get_quota(
    quota: &Quota,
    request: GetQuotaRequest,
) -> Result<GetQuotaResponse, Error> {
    let tenant = tenant_or_platform(&request.tenant)?;
    let below = quota.below(&tenant).await?;
    let mut tx = quota.begin(&tenant).await?;
    let (version, set) = quotas::find(&mut tx, &tenant).await.map_err(stored)?;
    // Nobody holds a connection while others are asked.
    drop(tx);
    let used = match tenant.as_str() {
        PLATFORM => None,
        tenant => quota.used(tenant).await,
    };
    Ok(GetQuotaResponse {
        effective: Some(limits::effective(&set, &below)),
        limits: Some(set),
        version,
        used,
    })
}
