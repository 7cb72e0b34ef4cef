//! ListDynamicPartitions: the values of a set in the order they came.

use servo_mesh::Error;
use servo_mesh::paging::page_size;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_proto::v1::{
    DynamicPartition, ListDynamicPartitionsRequest, ListDynamicPartitionsResponse,
};

use super::add_dynamic_partitions::check_set;
use super::context::{Planner, scope, stored};
use super::filters::{Page, Wanted};
use crate::store::deployments::time;
use crate::store::sets;

pub(super) async fn list_dynamic_partitions(
    planner: &Planner,
    request: ListDynamicPartitionsRequest,
) -> Result<ListDynamicPartitionsResponse, Error> {
    let scope = scope(&request)?;
    let wanted = Wanted::values(&request.filter)?;
    check_set(&request.set)?;
    let size = page_size(request.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let list = [
        "dynamic partitions",
        &scope.tenant,
        &scope.workspace,
        &request.set,
        &request.filter,
    ];
    let cursor = planner.pages.read(&list, &request.page_token)?;
    let after = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let mut tx = planner.begin(&scope).await?;
    let total = sets::count(&mut tx, &scope, &request.set)
        .await
        .map_err(stored)?;
    let entry = |row: sets::ValueRow| {
        (
            row.ordinal,
            DynamicPartition {
                value: row.value,
                create_time: Some(time(row.created_at)),
            },
        )
    };
    let mut page = Page::new(size, after);
    while page.wants_more() {
        let rows = sets::list(&mut tx, &scope, &request.set, page.from, page.stretch()).await;
        let rows = rows.map_err(stored)?.into_iter().map(entry).collect();
        page.add(rows, |partition| wanted.fits_value(partition));
    }
    let (partitions, last) = page.end();
    let token = |last: i64| planner.pages.write(&list, &last.to_string());
    Ok(ListDynamicPartitionsResponse {
        partitions,
        next_page_token: last.map(token).unwrap_or_default(),
        total: total.unsigned_abs(),
    })
}
