//! ListBudgets: lists a tenant's budgets by name.

use servo_mesh::Error;
use servo_mesh::filter::{Field, Filter};
use servo_mesh::paging::page_size;
use servo_model::EventId;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_proto::v1::{Budget, BudgetAction, ListBudgetsRequest, ListBudgetsResponse};
use uuid::Uuid;

use super::Quota;
use super::get_budget::with_spent;
use super::support::errors::store_error;
use super::support::parse::parse_tenant;
use crate::core::budgets::BUDGETS_PER_TENANT_MAX;
use crate::store::budgets;

static FIELDS: [Field<Budget>; 3] = [
    Field::text("name", |budget| &budget.name),
    Field::text("workspace", |budget| &budget.workspace),
    Field::named(
        "action",
        "BUDGET_ACTION_",
        |name| BudgetAction::from_str_name(name).map(i32::from),
        |budget| budget.action,
    ),
];

pub(super) async fn list_budgets(
    quota: &Quota,
    request: ListBudgetsRequest,
) -> Result<ListBudgetsResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    let filter = Filter::parse(&request.filter, &FIELDS)?;
    let size = page_size(request.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let list = ["budgets", tenant.as_str(), &request.filter];
    let after = quota
        .pages
        .read(&list, &request.page_token)?
        .and_then(|cursor| parse_cursor(&cursor));
    let mut tx = quota.begin(&tenant).await?;
    // A tenant has few budgets, so all of them are read, whatever the filter is.
    let mut rows = budgets::list(&mut tx, &tenant, after, BUDGETS_PER_TENANT_MAX)
        .await
        .map_err(store_error)?;
    rows.retain(|row| filter.matches(&row.budget));
    let more = rows.len() > size;
    rows.truncate(size);
    let last = rows
        .last()
        .filter(|_| more)
        .map(|row| format!("{} {}", row.budget.budget_id, row.budget.name));
    let mut budgets = Vec::with_capacity(rows.len());
    for row in rows {
        budgets.push(with_spent(&mut tx, &tenant, row).await?);
    }
    let next_page_token = last
        .map(|cursor| quota.pages.write(&list, &cursor))
        .unwrap_or_default();
    Ok(ListBudgetsResponse {
        budgets,
        next_page_token,
    })
}

/// Parses the name and id of a page's last budget from its token.
fn parse_cursor(cursor: &str) -> Option<(String, Uuid)> {
    let (id, name) = cursor.split_once(' ')?;
    let id: EventId = id.parse().ok()?;
    Some((name.to_owned(), Uuid::from_bytes(*id.as_bytes())))
}
