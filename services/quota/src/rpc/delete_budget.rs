//! DeleteBudget: what it held goes on.

use prost::Message;
use servo_mesh::{Caller, Error};
use servo_proto::v1::{Budget, DeleteBudgetRequest, DeleteBudgetResponse};
use uuid::Uuid;

use super::change::{Ask, Begun, begin, next_version};
use super::context::{Quota, stored, tenant};
use super::create_budget::{changed, subject};
use super::get_budget::existing;
use crate::store::budgets;

pub(super) async fn delete_budget(
    quota: &Quota,
    caller: &Caller,
    request: DeleteBudgetRequest,
) -> Result<DeleteBudgetResponse, Error> {
    let ask = Ask {
        method: "DeleteBudget",
        caller,
        tenant: tenant(&request.tenant)?,
        request_id: &request.request_id,
        comment: &request.comment,
        body: request.encode_to_vec(),
    };
    let mut change = match begin(quota, ask).await? {
        Begun::Answered(answer) => return Ok(answer),
        Begun::Open(change) => change,
    };
    let (id, current) = existing(&mut change.tx, &change.tenant, &request.budget_id).await?;
    let version = next_version(request.expected_version, current.budget.version)?;
    let budget = Budget {
        version,
        ..current.budget
    };
    let row_id = Uuid::from_bytes(*id.as_bytes());
    budgets::keep(&mut change.tx, &change.tenant, row_id, &budget, true)
        .await
        .map_err(stored)?;
    let answer = |accepted_event_id| DeleteBudgetResponse { accepted_event_id };
    change
        .finish(&subject(id), changed(id, budget, true), answer)
        .await
}
