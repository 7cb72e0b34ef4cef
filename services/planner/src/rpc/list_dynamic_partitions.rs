//! ListDynamicPartitions: the values of a set in the order they came.

use servo_mesh::Error;
use servo_mesh::paging::page_size;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_proto::v1::{DynamicPartition, ListDynamicPartitionsRequest, ListDynamicPartitionsResponse};

use super::add_dynamic_partitions::check_set;
use super::context::{Planner, no_filter, scope, stored};
use crate::store::deployments::time;
use crate::store::sets;

pub(super) async fn list_dynamic_partitions(
    planner: &Planner,
    request: ListDynamicPartitionsRequest,
) -> Result<ListDynamicPartitionsResponse, Error> {
    let scope = scope(&request)?;
    no_filter(&request.filter)?;
    check_set(&request.set)?;
    let size = page_size(request.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let list = ["dynamic partitions", &scope.tenant, &scope.workspace, &request.set];
    let cursor = planner.pages.read(&list, &request.page_token)?;
    let after = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let mut tx = planner.begin(&scope).await?;
    let count = i64::try_from(size + 1).unwrap_or(i64::MAX);
    let mut rows = sets::list(&mut tx, &scope, &request.set, after, count).await.map_err(stored)?;
    let total = sets::count(&mut tx, &scope, &request.set).await.map_err(stored)?;
    let more = rows.len() > size;
    rows.truncate(size);
    let last = rows.last().filter(|_| more).map(|row| row.ordinal.to_string());
    let entry =
        |row: sets::ValueRow| DynamicPartition { value: row.value, create_time: Some(time(row.created_at)) };
    Ok(ListDynamicPartitionsResponse {
        partitions: rows.into_iter().map(entry).collect(),
        next_page_token: last.map(|cursor| planner.pages.write(&list, &cursor)).unwrap_or_default(),
        total: total.unsigned_abs(),
    })
}
