//! What the loops read of all tenants.

use std::collections::BTreeMap;

use servo_model::Stream;
use servo_proto::v1::{Pool, QuotaLimits};
use servo_store::{LoopStore, StoreError, query};

use super::decoded;
use super::pools::PoolRow;

/// The last position of every shard of a stream.
pub(crate) async fn heads(store: &LoopStore, stream: Stream) -> Result<Vec<i64>, StoreError> {
    let rows: Vec<(i64,)> = store
        .all(query(include_str!("sql/heads.sql")).bind(stream.code()))
        .await?;
    Ok(rows.into_iter().map(|(head,)| head).collect())
}

/// Whose settings changed after the positions in `after`, up to `heads`.
pub(crate) async fn touched(
    store: &LoopStore,
    after: &[i64],
    heads: &[i64],
) -> Result<Vec<String>, StoreError> {
    let shards: Vec<i16> = (0..Stream::Quota.shards()).collect();
    let statement = query(include_str!("sql/touched_tenants.sql"))
        .bind(Stream::Quota.code())
        .bind(shards)
        .bind(after)
        .bind(heads);
    let rows: Vec<(String,)> = store.all(statement).await?;
    Ok(rows.into_iter().map(|(tenant,)| tenant).collect())
}

/// Limits as set, of these tenants or of all.
pub(crate) async fn limits(
    store: &LoopStore,
    tenants: Option<&[String]>,
) -> Result<BTreeMap<String, QuotaLimits>, StoreError> {
    let statement = query(include_str!("sql/load_limits.sql")).bind(tenants);
    let rows: Vec<(String, Option<Vec<u8>>)> = store.all(statement).await?;
    let read = |(tenant, limits): (String, Option<Vec<u8>>)| {
        Ok((
            tenant,
            limits.map_or(Ok(QuotaLimits::default()), |limits| decoded(&limits))?,
        ))
    };
    rows.into_iter().map(read).collect()
}

/// Pools by tenant, of these tenants or of all.
pub(crate) async fn pools(
    store: &LoopStore,
    tenants: Option<&[String]>,
) -> Result<BTreeMap<String, Vec<Pool>>, StoreError> {
    type Columns = (String, String, i64, i64, String, bool);
    let rows: Vec<Columns> = store
        .all(query(include_str!("sql/load_pools.sql")).bind(tenants))
        .await?;
    let mut pools: BTreeMap<String, Vec<Pool>> = BTreeMap::new();
    for (tenant, pool, version, slots, description, deleted) in rows {
        let row = PoolRow::from((pool, version, slots, description, deleted));
        pools.entry(tenant).or_default().push(row.pool);
    }
    Ok(pools)
}
