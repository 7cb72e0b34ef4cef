//! ListPools: lists a tenant's pools by name, with the number of taken slots.

use servo_mesh::Error;
use servo_mesh::paging::page_size;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_proto::v1::{ListPoolsRequest, ListPoolsResponse};

use super::Quota;
use super::get_pool::with_use;
use super::support::errors::store_error;
use super::support::parse::parse_tenant;
use crate::store::pools;

pub(super) async fn list_pools(
    quota: &Quota,
    request: ListPoolsRequest,
) -> Result<ListPoolsResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    let size = page_size(request.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let list = ["pools", tenant.as_str()];
    let after = quota
        .pages
        .read(&list, &request.page_token)?
        .unwrap_or_default();
    let mut tx = quota.begin(&tenant).await?;
    let mut pools = pools::list(&mut tx, &tenant, &after, size + 1)
        .await
        .map_err(store_error)?;
    // Releases the connection before calling other services.
    drop(tx);
    let more = pools.len() > size;
    pools.truncate(size);
    let last = pools.last().filter(|_| more);
    let next_page_token = last
        .map(|pool| quota.pages.write(&list, &pool.pool))
        .unwrap_or_default();
    // Without pools there is no use to count.
    let counted = if pools.is_empty() {
        None
    } else {
        quota.count_use(&tenant, "").await
    };
    let pools = pools
        .into_iter()
        .map(|pool| with_use(pool, counted.as_ref()))
        .collect();
    Ok(ListPoolsResponse {
        pools,
        next_page_token,
    })
}
