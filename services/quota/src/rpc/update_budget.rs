//! UpdateBudget: replaces a budget; its spent amount stays.

use prost::Message;
use servo_mesh::{Caller, Error};
use servo_proto::v1::{Budget, UpdateBudgetRequest, UpdateBudgetResponse};

use super::Quota;
use super::create_budget::{budget_changed, budget_subject, store_budget};
use super::get_budget::existing_budget;
use super::get_prices::effective_prices;
use super::support::change::{Begun, ChangeRequest, begin, next_version};
use super::support::errors::field_error;
use super::support::parse::parse_tenant;
use crate::core::budgets::normalize;

pub(super) async fn update_budget(
    quota: &Quota,
    caller: &Caller,
    request: UpdateBudgetRequest,
) -> Result<UpdateBudgetResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    let change_request = ChangeRequest {
        method: "UpdateBudget",
        caller,
        tenant: (&tenant).into(),
        request_id: &request.request_id,
        comment: &request.comment,
        body: request.encode_to_vec(),
    };
    let requested = request
        .budget
        .as_ref()
        .ok_or_else(|| Error::bad_field("budget", "is missing"))?;
    let (prices, _) = effective_prices(quota, &change_request.tenant).await?;
    let mut change = match begin(quota, change_request).await? {
        Begun::Answered(answer) => return Ok(answer),
        Begun::Open(change) => change,
    };
    let (id, current) = existing_budget(&mut change.tx, &tenant, &request.budget_id).await?;
    let version = next_version(request.expected_version, current.budget.version)?;
    let budget = Budget {
        version,
        ..normalize(requested, &prices.currency).map_err(field_error)?
    };
    let stored = store_budget(&mut change, &tenant, id, &budget).await?;
    let answer = |accepted_event_id| UpdateBudgetResponse {
        budget: Some(stored),
        accepted_event_id,
    };
    change
        .finish(
            &budget_subject(id),
            budget_changed(id, budget, false),
            answer,
        )
        .await
}
