//! GetBudget: one budget and what is spent of it.

use jiff::Timestamp;
use servo_mesh::{Error, Reason};
use servo_model::EventId;
use servo_proto::v1::{Budget, GetBudgetRequest, GetBudgetResponse};
use servo_store::Tx;
use uuid::Uuid;

use super::context::{Quota, stored, tenant};
use crate::store::budgets::{self, BudgetRow};
use crate::wire;

pub(super) async fn get_budget(
    quota: &Quota,
    request: GetBudgetRequest,
) -> Result<GetBudgetResponse, Error> {
    let tenant = tenant(&request.tenant)?;
    let mut tx = quota.begin(&tenant).await?;
    let (_, row) = existing(&mut tx, &tenant, &request.budget_id).await?;
    Ok(GetBudgetResponse {
        budget: Some(with_spent(&mut tx, &tenant, row).await?),
    })
}

/// A text that is no id names no budget either.
pub(super) async fn existing(
    tx: &mut Tx,
    tenant: &str,
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
        .map_err(stored)?;
    Ok((id, row.ok_or_else(absent)?))
}

pub(super) async fn with_spent(tx: &mut Tx, tenant: &str, row: BudgetRow) -> Result<Budget, Error> {
    let (begin, end) = wire::period(&row, Timestamp::now());
    let spent = budgets::spent(tx, tenant, &row.budget, begin)
        .await
        .map_err(stored)?;
    Ok(Budget {
        spent_micros: spent,
        period_end_time: end,
        ..row.budget
    })
}
