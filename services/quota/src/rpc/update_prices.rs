//! UpdatePrices: sets the prices of future usage.

use prost::Message;
use servo_mesh::{Caller, Error};
use servo_proto::v1::{
    PriceList, QuotaChanged, UpdatePricesRequest, UpdatePricesResponse, quota_changed,
};

use super::Quota;
use super::get_prices::effective_prices;
use super::support::change::{Begun, Change, ChangeRequest, begin, next_version};
use super::support::errors::{field_error, store_error};
use super::support::parse::parse_tenant_or_platform;
use crate::core::prices::check;
use crate::store::{budgets, prices};

const SUBJECT: &str = "prices";

pub(super) async fn update_prices(
    quota: &Quota,
    caller: &Caller,
    request: UpdatePricesRequest,
) -> Result<UpdatePricesResponse, Error> {
    let tenant = parse_tenant_or_platform(&request.tenant)?;
    let requested = request
        .prices
        .clone()
        .ok_or_else(|| Error::bad_field("prices", "is missing"))?;
    check(&requested).map_err(field_error)?;
    let (current_prices, _) = effective_prices(quota, &tenant).await?;
    let change_request = ChangeRequest {
        method: "UpdatePrices",
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
    let current = prices::find(&mut change.tx, &change.tenant)
        .await
        .map_err(store_error)?;
    let version = next_version(
        request.expected_version,
        current.map_or(0, |prices| prices.version),
    )?;
    if requested.currency != current_prices.currency {
        refuse_while_budgets_exist(&mut change).await?;
    }
    let stored = PriceList {
        version,
        ..requested
    };
    prices::upsert(&mut change.tx, &change.tenant, &stored)
        .await
        .map_err(store_error)?;
    let setting = Some(quota_changed::Setting::Prices(stored.clone()));
    let changed = QuotaChanged {
        version,
        setting,
        ..Default::default()
    };
    let answer = |accepted_event_id| UpdatePricesResponse {
        prices: Some(stored),
        accepted_event_id,
    };
    change.finish(SUBJECT, changed, answer).await
}

/// Refuses another currency while there are budgets, because budgets count only costs in the
/// currency of the price list.
async fn refuse_while_budgets_exist(change: &mut Change<'_>) -> Result<(), Error> {
    let Some(tenant) = change.tenant.tenant() else {
        // The platform has no budgets of its own.
        return Ok(());
    };
    match budgets::count_existing(&mut change.tx, tenant)
        .await
        .map_err(store_error)?
    {
        0 => Ok(()),
        count => {
            let sentence = format!("is not that of the {count} budgets; delete them first");
            Err(Error::bad_field("prices.currency", sentence))
        }
    }
}
