//! ListAssets: lists the assets of a deployment by key, a page at a time.

use servo_mesh::Error;
use servo_mesh::filter::Filter;
use servo_mesh::paging::page_size;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_proto::v1::{ListAssetsRequest, ListAssetsResponse};

use super::Planner;
use super::support::filters;
use super::support::parse::scope;
use crate::core::lineage;

pub(super) async fn list_assets(
    planner: &Planner,
    request: ListAssetsRequest,
) -> Result<ListAssetsResponse, Error> {
    let scope = scope(&request)?;
    let filter = Filter::parse(&request.filter, &filters::ASSETS)?;
    let size = page_size(request.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let selection = request.selection.join("\n");
    let list = [
        "assets",
        scope.tenant.as_str(),
        scope.workspace.as_str(),
        &request.deployment_id,
        &selection,
        &request.filter,
    ];
    let cursor = planner.pages.read(&list, &request.page_token)?;
    let mut tx = planner.begin(&scope).await?;
    let found = planner
        .deployment(&mut tx, &scope, &request.deployment_id)
        .await?;
    let graph = &found.graph;
    let selected = if request.selection.is_empty() {
        (0..).take(graph.keys.len()).collect()
    } else {
        graph.select("selection", &request.selection)?
    };
    // The cursor is a key rather than an index, so that a deployment between two pages skips no
    // asset that still exists.
    let after = |asset: &u32| {
        cursor
            .as_deref()
            .is_none_or(|cursor| graph.name(*asset) > cursor)
    };
    let matches = |asset: &u32| filter.matches(&graph.manifest.assets[*asset as usize]);
    let mut page: Vec<u32> = selected
        .into_iter()
        .filter(after)
        .filter(matches)
        .take(size + 1)
        .collect();
    let more = page.len() > size;
    page.truncate(size);
    let moment = planner.moment(&mut tx, &scope, graph).await?;
    let last = page.last().filter(|_| more).map(|asset| graph.name(*asset));
    Ok(ListAssetsResponse {
        next_page_token: last
            .map(|cursor| planner.pages.write(&list, cursor))
            .unwrap_or_default(),
        assets: page
            .iter()
            .map(|asset| lineage::asset(graph, &found.id, *asset, &moment))
            .collect(),
    })
}
