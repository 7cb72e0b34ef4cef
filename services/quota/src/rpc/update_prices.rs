//! UpdatePrices: what use costs from now on.

use prost::Message;
use servo_mesh::{Caller, Error};
use servo_proto::v1::{
    PriceList, QuotaChanged, UpdatePricesRequest, UpdatePricesResponse, quota_changed,
};

use super::change::{Ask, Begun, Change, begin, next_version};
use super::context::{Quota, bad, stored, tenant_or_platform};
use super::get_prices::holding;
use crate::core::prices::check;
use crate::store::{budgets, prices};

const SUBJECT: &str = "prices";

pub(super) async fn update_prices(
    quota: &Quota,
    caller: &Caller,
    request: UpdatePricesRequest,
) -> Result<UpdatePricesResponse, Error> {
    let tenant = tenant_or_platform(&request.tenant)?;
    let wanted = request
        .prices
        .clone()
        .ok_or_else(|| Error::bad_field("prices", "is missing"))?;
    check(&wanted).map_err(bad)?;
    let (held, _) = holding(quota, &tenant).await?;
    let ask = Ask {
        method: "UpdatePrices",
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
    let current = prices::find(&mut change.tx, &change.tenant)
        .await
        .map_err(stored)?;
    let version = next_version(
        request.expected_version,
        current.map_or(0, |prices| prices.version),
    )?;
    if wanted.currency != held.currency {
        refuse_with_budgets(&mut change).await?;
    }
    let kept = PriceList { version, ..wanted };
    prices::keep(&mut change.tx, &change.tenant, &kept)
        .await
        .map_err(stored)?;
    let setting = Some(quota_changed::Setting::Prices(kept.clone()));
    let changed = QuotaChanged {
        version,
        setting,
        ..Default::default()
    };
    let answer = |accepted_event_id| UpdatePricesResponse {
        prices: Some(kept),
        accepted_event_id,
    };
    change.finish(SUBJECT, changed, answer).await
}

/// Budgets are in the list's currency; another one would leave them without anything to count.
async fn refuse_with_budgets(change: &mut Change<'_>) -> Result<(), Error> {
    match budgets::how_many(&mut change.tx, &change.tenant)
        .await
        .map_err(stored)?
    {
        0 => Ok(()),
        count => {
            let sentence = format!("is not that of the {count} budgets; delete them first");
            Err(Error::bad_field("prices.currency", sentence))
        }
    }
}
