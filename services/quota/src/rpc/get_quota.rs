//! GetQuota: returns a tenant's limits as set and as they apply, and their current use.

use servo_mesh::Error;
use servo_model::TenantScope;
use servo_proto::v1::{GetQuotaRequest, GetQuotaResponse};

use super::Quota;
use super::support::errors::store_error;
use super::support::parse::parse_tenant_or_platform;
use crate::core::limits;
use crate::store::quotas;

pub(super) async fn get_quota(
    quota: &Quota,
    request: GetQuotaRequest,
) -> Result<GetQuotaResponse, Error> {
    let tenant = parse_tenant_or_platform(&request.tenant)?;
    let inherited = quota.inherited_limits(&tenant).await?;
    let mut tx = quota.begin_in(&tenant).await?;
    let (version, set) = quotas::find(&mut tx, &tenant).await.map_err(store_error)?;
    // Releases the connection before calling other services.
    drop(tx);
    let used = match &tenant {
        TenantScope::All => None,
        TenantScope::One(tenant) => quota.current_use(tenant).await,
    };
    Ok(GetQuotaResponse {
        effective: Some(limits::effective(&set, &inherited)),
        limits: Some(set),
        version,
        used,
    })
}
