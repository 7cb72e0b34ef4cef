//! UpdateBudget: replaces a budget; what is spent stays spent.

use prost::Message;
use servo_mesh::{Caller, Error};
use servo_proto::v1::{Budget, UpdateBudgetRequest, UpdateBudgetResponse};

use super::change::{Ask, Begun, begin, next_version};
use super::context::{Quota, bad, tenant};
use super::create_budget::{changed, keep, subject};
use super::get_budget::existing;
use super::get_prices::holding;
use crate::core::budgets::normal;

pub(super) async fn update_budget(
    quota: &Quota,
    caller: &Caller,
    request: UpdateBudgetRequest,
) -> Result<UpdateBudgetResponse, Error> {
    let ask = Ask {
        method: "UpdateBudget",
        caller,
        tenant: tenant(&request.tenant)?,
        request_id: &request.request_id,
        comment: &request.comment,
        body: request.encode_to_vec(),
    };
    let wanted = request
        .budget
        .as_ref()
        .ok_or_else(|| Error::bad_field("budget", "is missing"))?;
    let (prices, _) = holding(quota, &ask.tenant).await?;
    let mut change = match begin(quota, ask).await? {
        Begun::Answered(answer) => return Ok(answer),
        Begun::Open(change) => change,
    };
    let (id, current) = existing(&mut change.tx, &change.tenant, &request.budget_id).await?;
    let version = next_version(request.expected_version, current.budget.version)?;
    let budget = Budget {
        version,
        ..normal(wanted, &prices.currency).map_err(bad)?
    };
    let told = keep(&mut change, id, &budget).await?;
    let answer = |accepted_event_id| UpdateBudgetResponse {
        budget: Some(told),
        accepted_event_id,
    };
    change
        .finish(&subject(id), changed(id, budget, false), answer)
        .await
}
