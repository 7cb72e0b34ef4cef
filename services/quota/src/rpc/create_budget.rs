//! CreateBudget: limits how much may be spent in a period.

use prost::Message;
use servo_mesh::{Caller, Error, Reason};
use servo_model::{EventId, TenantId};
use servo_proto::v1::{
    Budget, CreateBudgetRequest, CreateBudgetResponse, QuotaChanged, quota_changed,
};
use uuid::Uuid;

use super::Quota;
use super::get_budget::with_spent;
use super::get_prices::effective_prices;
use super::support::change::{Begun, Change, ChangeRequest, begin};
use super::support::errors::{field_error, store_error};
use super::support::ids::new_event_id;
use super::support::parse::parse_tenant;
use crate::core::budgets::{BUDGETS_PER_TENANT_MAX, normalize};
use crate::store::budgets;

pub(super) async fn create_budget(
    quota: &Quota,
    caller: &Caller,
    request: CreateBudgetRequest,
) -> Result<CreateBudgetResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    let change_request = ChangeRequest {
        method: "CreateBudget",
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
    let requested = normalize(requested, &prices.currency).map_err(field_error)?;
    check_count(&mut change, &tenant).await?;
    let id = new_event_id();
    let budget = Budget {
        version: 1,
        ..requested
    };
    let stored = store_budget(&mut change, &tenant, id, &budget).await?;
    let answer = |accepted_event_id| CreateBudgetResponse {
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

async fn check_count(change: &mut Change<'_>, tenant: &TenantId) -> Result<(), Error> {
    let count = budgets::count_existing(&mut change.tx, tenant)
        .await
        .map_err(store_error)?;
    if count < BUDGETS_PER_TENANT_MAX {
        return Ok(());
    }
    let sentence = format!("has {count} budgets; at most {BUDGETS_PER_TENANT_MAX} are allowed");
    let message = format!("the tenant {sentence}; delete one first");
    Err(Error::new(Reason::QuotaExceeded, message).over_quota("budgets", sentence))
}

/// Stores the row and returns the budget as a reader sees it.
pub(super) async fn store_budget(
    change: &mut Change<'_>,
    tenant: &TenantId,
    id: EventId,
    budget: &Budget,
) -> Result<Budget, Error> {
    let id = Uuid::from_bytes(*id.as_bytes());
    budgets::upsert(&mut change.tx, tenant, id, budget, false)
        .await
        .map_err(store_error)?;
    let row = budgets::find(&mut change.tx, tenant, id)
        .await
        .map_err(store_error)?;
    let row =
        row.ok_or_else(|| Error::new(Reason::Internal, "the stored budget cannot be read back"))?;
    with_spent(&mut change.tx, tenant, row).await
}

/// Returns the subject of a budget's events; versions count per subject.
pub(super) fn budget_subject(id: EventId) -> String {
    format!("budget:{id}")
}

pub(super) fn budget_changed(id: EventId, budget: Budget, deleted: bool) -> QuotaChanged {
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
