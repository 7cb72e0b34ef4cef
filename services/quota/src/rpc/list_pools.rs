//! ListPools: a tenant's pools by name, and how many of their slots are taken.

use servo_mesh::Error;
use servo_mesh::paging::page_size;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_proto::v1::{ListPoolsRequest, ListPoolsResponse};

use super::context::{Quota, stored, tenant};
use super::get_pool::with_use;
use crate::store::pools;

pub(super) async fn list_pools(
    quota: &Quota,
    request: ListPoolsRequest,
) -> Result<ListPoolsResponse, Error> {
    let tenant = tenant(&request.tenant)?;
    let size = page_size(request.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let list = ["pools", tenant.as_str()];
    let after = quota
        .pages
        .read(&list, &request.page_token)?
        .unwrap_or_default();
    let mut tx = quota.begin(&tenant).await?;
    let mut pools = pools::list(&mut tx, &tenant, &after, size + 1)
        .await
        .map_err(stored)?;
    // Nobody holds a connection while others are asked.
    drop(tx);
    let more = pools.len() > size;
    pools.truncate(size);
    let last = pools.last().filter(|_| more);
    let next_page_token = last
        .map(|pool| quota.pages.write(&list, &pool.pool))
        .unwrap_or_default();
    // Who has no pools need not be asked about.
    let counted = match pools.is_empty() {
        true => None,
        false => quota.count_use(&tenant, "").await,
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
