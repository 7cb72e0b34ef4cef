//! ListBudgets: lists a tenant's budgets by name.

use servo_mesh::Error;
use servo_mesh::Reason;
use servo_mesh::paging::page_size;
use servo_model::EventId;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_proto::v1::{ListBudgetsRequest, ListBudgetsResponse};
use uuid::Uuid;

use super::Quota;
use super::get_budget::with_spent;
use super::support::errors::store_error;
use super::support::parse::parse_tenant;
use crate::store::budgets;

pub(super) async fn list_budgets(
    quota: &Quota,
    request: ListBudgetsRequest,
) -> Result<ListBudgetsResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    refuse_filter(&request.filter)?;
    let size = page_size(request.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let list = ["budgets", tenant.as_str()];
    let after = quota
        .pages
        .read(&list, &request.page_token)?
        .and_then(|cursor| parse_cursor(&cursor));
    let mut tx = quota.begin(&tenant).await?;
    let mut rows = budgets::list(&mut tx, &tenant, after, size + 1)
        .await
        .map_err(store_error)?;
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

/// Refuses a filter, because ignoring it would return wrong results.
fn refuse_filter(filter: &str) -> Result<(), Error> {
    let sentence = "this list takes no filter yet; leave it empty";
    if filter.is_empty() {
        Ok(())
    } else {
        Err(Error::new(Reason::InvalidFilter, sentence).and_bad_field("filter", sentence))
    }
}
