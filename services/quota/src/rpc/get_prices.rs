//! GetPrices: the price list that holds for a tenant.

use servo_mesh::Error;
use servo_proto::v1::{GetPricesRequest, GetPricesResponse, PriceList};

use super::context::{Quota, stored, tenant_or_platform};
use crate::core::picture::PLATFORM;
use crate::core::prices::free;
use crate::store::prices;

pub(super) async fn get_prices(
    quota: &Quota,
    request: GetPricesRequest,
) -> Result<GetPricesResponse, Error> {
    let tenant = tenant_or_platform(&request.tenant)?;
    let (prices, is_default) = holding(quota, &tenant).await?;
    Ok(GetPricesResponse {
        prices: Some(prices),
        is_default,
    })
}

/// The tenant's list, or the platform's and true.
pub(super) async fn holding(quota: &Quota, tenant: &str) -> Result<(PriceList, bool), Error> {
    let own = prices::find(&mut *quota.begin(tenant).await?, tenant)
        .await
        .map_err(stored)?;
    if let Some(own) = own {
        return Ok((own, tenant == PLATFORM));
    }
    let platform = prices::find(&mut *quota.begin(PLATFORM).await?, PLATFORM)
        .await
        .map_err(stored)?;
    Ok((platform.unwrap_or_else(free), true))
}
