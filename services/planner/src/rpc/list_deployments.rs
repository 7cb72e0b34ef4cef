//! ListDeployments: newest first, a page at a time.

use servo_mesh::Error;
use servo_mesh::paging::page_size;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_proto::v1::{ListDeploymentsRequest, ListDeploymentsResponse};

use super::context::{Planner, no_filter, scope, stored};
use crate::store::deployments;

pub(super) async fn list_deployments(
    planner: &Planner,
    request: ListDeploymentsRequest,
) -> Result<ListDeploymentsResponse, Error> {
    let scope = scope(&request)?;
    no_filter(&request.filter)?;
    let size = page_size(request.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let list = ["deployments", &scope.tenant, &scope.workspace];
    let cursor = planner.pages.read(&list, &request.page_token)?;
    let below = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(i64::MAX);
    let mut tx = planner.begin(&scope).await?;
    // One more than the page holds tells whether another follows.
    let count = i64::try_from(size + 1).unwrap_or(i64::MAX);
    let mut rows = deployments::list(&mut tx, &scope, below, count).await.map_err(stored)?;
    let more = rows.len() > size;
    rows.truncate(size);
    let last = rows.last().filter(|_| more).map(|row| row.version.to_string());
    let deployments: Result<Vec<_>, _> = rows.iter().map(|row| row.message()).collect();
    Ok(ListDeploymentsResponse {
        deployments: deployments.map_err(stored)?,
        next_page_token: last.map(|cursor| planner.pages.write(&list, &cursor)).unwrap_or_default(),
    })
}
