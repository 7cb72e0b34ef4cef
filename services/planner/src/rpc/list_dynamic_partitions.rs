//! ListDynamicPartitions: lists the values of a set in the order they were added.

use servo_mesh::Error;
use servo_mesh::filter::Filter;
use servo_mesh::paging::page_size;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_proto::proto_time;
use servo_proto::v1::{
    DynamicPartition, ListDynamicPartitionsRequest, ListDynamicPartitionsResponse,
};

use super::Planner;
use super::support::dynamic_sets::check_set_name;
use super::support::errors::store_error;
use super::support::filtered_page::FilteredPage;
use super::support::filters;
use super::support::parse::scope;
use crate::store::sets;

pub(super) async fn list_dynamic_partitions(
    planner: &Planner,
    request: ListDynamicPartitionsRequest,
) -> Result<ListDynamicPartitionsResponse, Error> {
    let scope = scope(&request)?;
    let filter = Filter::parse(&request.filter, &filters::DYNAMIC_PARTITIONS)?;
    check_set_name(&request.set)?;
    let size = page_size(request.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let list = [
        "dynamic partitions",
        scope.tenant.as_str(),
        scope.workspace.as_str(),
        &request.set,
        &request.filter,
    ];
    let cursor = planner.pages.read(&list, &request.page_token)?;
    let after = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let mut tx = planner.begin(&scope).await?;
    let total = sets::count(&mut tx, &scope, &request.set)
        .await
        .map_err(store_error)?;
    let entry = |row: sets::ValueRow| {
        (
            row.ordinal,
            DynamicPartition {
                value: row.value,
                create_time: Some(proto_time(row.created_at)),
            },
        )
    };
    let mut page = FilteredPage::new(size, after);
    while page.wants_more() {
        let rows = sets::list(&mut tx, &scope, &request.set, page.from, page.batch_size()).await;
        let rows = rows.map_err(store_error)?.into_iter().map(entry).collect();
        page.add(rows, |partition| filter.matches(partition));
    }
    let (partitions, last) = page.finish();
    let token = |last: i64| planner.pages.write(&list, &last.to_string());
    Ok(ListDynamicPartitionsResponse {
        partitions,
        next_page_token: last.map(token).unwrap_or_default(),
        total: total.unsigned_abs(),
    })
}
