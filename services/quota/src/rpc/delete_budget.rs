//! DeleteBudget: deletes a budget; work that it held back continues.

use prost::Message;
use servo_mesh::{Caller, Error};
use servo_proto::v1::{Budget, DeleteBudgetRequest, DeleteBudgetResponse};
use uuid::Uuid;

use super::Quota;
use super::create_budget::{budget_changed, budget_subject};
use super::get_budget::existing_budget;
use super::support::change::{Begun, ChangeRequest, begin, next_version};
use super::support::errors::store_error;
use super::support::parse::parse_tenant;
use crate::store::budgets;

pub(super) async fn delete_budget(
    quota: &Quota,
    caller: &Caller,
    request: DeleteBudgetRequest,
) -> Result<DeleteBudgetResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    let change_request = ChangeRequest {
        method: "DeleteBudget",
        caller,
        tenant: (&tenant).into(),
        request_id: &request.request_id,
        comment: &request.comment,
        body: request.encode_to_vec(),
    };
    let mut change = match begin(quota, change_request).await? {
        Begun::Answered(answer) => return Ok(answer),
        Begun::Open(change) => change,
    };
    let (id, current) = existing_budget(&mut change.tx, &tenant, &request.budget_id).await?;
    let version = next_version(request.expected_version, current.budget.version)?;
    let budget = Budget {
        version,
        ..current.budget
    };
    let row_id = Uuid::from_bytes(*id.as_bytes());
    budgets::upsert(&mut change.tx, &tenant, row_id, &budget, true)
        .await
        .map_err(store_error)?;
    let answer = |accepted_event_id| DeleteBudgetResponse { accepted_event_id };
    change
        .finish(
            &budget_subject(id),
            budget_changed(id, budget, true),
            answer,
        )
        .await
}
