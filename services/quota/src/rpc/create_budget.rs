//! CreateBudget: how much may be spent in a period.

use prost::Message;
use servo_mesh::{Caller, Error, Reason};
use servo_model::EventId;
use servo_proto::v1::{
    Budget, CreateBudgetRequest, CreateBudgetResponse, QuotaChanged, quota_changed,
};
use uuid::Uuid;

use super::change::{Ask, Begun, Change, begin};
use super::context::{Quota, bad, millis, stored, tenant};
use super::get_budget::with_spent;
use super::get_prices::holding;
use crate::core::budgets::{BUDGETS_PER_TENANT_MAX, normal};
use crate::store::budgets;

pub(super) async fn create_budget(
    quota: &Quota,
    caller: &Caller,
    request: CreateBudgetRequest,
) -> Result<CreateBudgetResponse, Error> {
    let ask = Ask {
        method: "CreateBudget",
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
    let wanted = normal(wanted, &prices.currency).map_err(bad)?;
    check_room(&mut change).await?;
    let id = EventId::new(millis(), rand::random());
    let budget = Budget {
        version: 1,
        ..wanted
    };
    let told = keep(&mut change, id, &budget).await?;
    let answer = |accepted_event_id| CreateBudgetResponse {
        budget: Some(told),
        accepted_event_id,
    };
    change
        .finish(&subject(id), changed(id, budget, false), answer)
        .await
}

async fn check_room(change: &mut Change<'_>) -> Result<(), Error> {
    let count = budgets::how_many(&mut change.tx, &change.tenant)
        .await
        .map_err(stored)?;
    if count < BUDGETS_PER_TENANT_MAX {
        return Ok(());
    }
    let sentence = format!("has {count} budgets; at most {BUDGETS_PER_TENANT_MAX} are allowed");
    let message = format!("the tenant {sentence}; delete one first");
    Err(Error::new(Reason::QuotaExceeded, message).over_quota("budgets", sentence))
}

/// Writes the row and answers the budget as a reader finds it.
pub(super) async fn keep(
    change: &mut Change<'_>,
    id: EventId,
    budget: &Budget,
) -> Result<Budget, Error> {
    let id = Uuid::from_bytes(*id.as_bytes());
    budgets::keep(&mut change.tx, &change.tenant, id, budget, false)
        .await
        .map_err(stored)?;
    let row = budgets::find(&mut change.tx, &change.tenant, id)
        .await
        .map_err(stored)?;
    let row = row.ok_or_else(|| {
        Error::new(
            Reason::Internal,
            "the budget is gone as soon as it was kept",
        )
    })?;
    with_spent(&mut change.tx, &change.tenant, row).await
}

/// What the versions of a budget count.
pub(super) fn subject(id: EventId) -> String {
    format!("budget:{id}")
}

pub(super) fn changed(id: EventId, budget: Budget, deleted: bool) -> QuotaChanged {
    let version = budget.version;
    let setting = quota_changed::Setting::Budget(Budget {
        budget_id: id.to_string(),
        ..budget
    });
    QuotaChanged {
        version,
        deleted,
        setting: Some(setting),
        ..Default::default()
    }
}
