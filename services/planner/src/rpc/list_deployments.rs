//! ListDeployments: lists deployments, newest first, a page at a time.

use servo_mesh::Error;
use servo_mesh::filter::Filter;
use servo_mesh::paging::page_size;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_proto::v1::{ListDeploymentsRequest, ListDeploymentsResponse};

use super::Planner;
use super::support::errors::store_error;
use super::support::filtered_page::FilteredPage;
use super::support::filters;
use super::support::parse::scope;
use crate::store::deployments;

pub(super) async fn list_deployments(
    planner: &Planner,
    request: ListDeploymentsRequest,
) -> Result<ListDeploymentsResponse, Error> {
    let scope = scope(&request)?;
    let filter = Filter::parse(&request.filter, &filters::DEPLOYMENTS)?;
    let size = page_size(request.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let list = [
        "deployments",
        scope.tenant.as_str(),
        scope.workspace.as_str(),
        &request.filter,
    ];
    let cursor = planner.pages.read(&list, &request.page_token)?;
    let below = cursor
        .and_then(|cursor| cursor.parse().ok())
        .unwrap_or(i64::MAX);
    let mut tx = planner.begin(&scope).await?;
    let mut page = FilteredPage::new(size, below);
    while page.wants_more() {
        let rows = deployments::list(&mut tx, &scope, page.from, page.batch_size())
            .await
            .map_err(store_error)?;
        let read: Result<Vec<_>, _> = rows
            .iter()
            .map(|row| Ok((row.version, row.message()?)))
            .collect();
        page.add(read.map_err(store_error)?, |deployment| {
            filter.matches(deployment)
        });
    }
    let (deployments, last) = page.finish();
    let token = |last: i64| planner.pages.write(&list, &last.to_string());
    Ok(ListDeploymentsResponse {
        deployments,
        next_page_token: last.map(token).unwrap_or_default(),
    })
}
