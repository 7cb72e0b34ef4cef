//! GetPrices: returns the effective price list of a tenant.

use servo_mesh::Error;
use servo_model::TenantScope;
use servo_proto::v1::{GetPricesRequest, GetPricesResponse, PriceList};

use super::Quota;
use super::support::errors::store_error;
use super::support::parse::parse_tenant_or_platform;
use crate::core::prices::free;
use crate::store::prices;

pub(super) async fn get_prices(
    quota: &Quota,
    request: GetPricesRequest,
) -> Result<GetPricesResponse, Error> {
    let tenant = parse_tenant_or_platform(&request.tenant)?;
    let (prices, is_default) = effective_prices(quota, &tenant).await?;
    Ok(GetPricesResponse {
        prices: Some(prices),
        is_default,
    })
}

/// Returns the tenant's list, or the platform's with `true`.
pub(super) async fn effective_prices(
    quota: &Quota,
    tenant: &TenantScope,
) -> Result<(PriceList, bool), Error> {
    let own = prices::find(&mut *quota.begin_in(tenant).await?, tenant)
        .await
        .map_err(store_error)?;
    let platform = TenantScope::All;
    if let Some(own) = own {
        return Ok((own, *tenant == platform));
    }
    let inherited = prices::find(&mut *quota.begin_in(&platform).await?, &platform)
        .await
        .map_err(store_error)?;
    Ok((inherited.unwrap_or_else(free), true))
}
