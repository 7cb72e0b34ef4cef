//! GetBudget: returns a budget and its spent amount.

use servo_mesh::{Error, Reason, now};
use servo_model::{EventId, TenantId};
use servo_proto::proto_time;
use servo_proto::v1::{Budget, GetBudgetRequest, GetBudgetResponse};
use servo_store::Tx;
use uuid::Uuid;

use super::Quota;
use super::support::errors::store_error;
use super::support::parse::parse_tenant;
use crate::core::budgets::period;
use crate::store::budgets::{self, BudgetRow};

pub(super) async fn get_budget(
    quota: &Quota,
    request: GetBudgetRequest,
) -> Result<GetBudgetResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    let mut tx = quota.begin(&tenant).await?;
    let (_, row) = existing_budget(&mut tx, &tenant, &request.budget_id).await?;
    Ok(GetBudgetResponse {
        budget: Some(with_spent(&mut tx, &tenant, row).await?),
    })
}

/// Fails with BUDGET_NOT_FOUND, also for a malformed id.
pub(super) async fn existing_budget(
    tx: &mut Tx,
    tenant: &TenantId,
    id: &str,
) -> Result<(EventId, BudgetRow), Error> {
    let absent = || {
        Error::new(
            Reason::BudgetNotFound,
            format!("there is no budget `{}`", id.escape_debug()),
        )
    };
    let id: EventId = id.parse().map_err(|_| absent())?;
    let row = budgets::find(tx, tenant, Uuid::from_bytes(*id.as_bytes()))
        .await
        .map_err(store_error)?;
    Ok((id, row.ok_or_else(absent)?))
}

pub(super) async fn with_spent(
    tx: &mut Tx,
    tenant: &TenantId,
    row: BudgetRow,
) -> Result<Budget, Error> {
    let (begin, end) = period(&row.budget, row.counts_from, now());
    let spent = budgets::spent(tx, tenant, &row.budget, begin)
        .await
        .map_err(store_error)?;
    Ok(Budget {
        spent_micros: spent,
        period_end_time: end.map(proto_time),
        ..row.budget
    })
}
