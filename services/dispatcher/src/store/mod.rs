//! The statements of this service, one function each.

mod pauses;
mod workers;

use servo_model::Stream;
use servo_store::{LoopStore, StoreError, TenantTx, query};
use std::time::Duration;
use uuid::Uuid;

pub(crate) use pauses::{
    NewPauseState, PauseRow, active_pauses, active_pauses_of, lock_pause, put_pause,
};
pub(crate) use workers::{
    CommandedWorker, PushWorker, WorkerRow, command_worker, commanded_workers, find_worker,
    forget_workers, lock_worker, note_lost, note_seen, page_workers, push_workers, register_worker,
    worker_gone,
};

use crate::core::PlanRef;
use crate::inputs::Wanted;

/// Says that this instance lives, and answers how many do.
pub(crate) async fn note_instance(
    loops: &LoopStore,
    instance: &str,
    ttl: Duration,
) -> Result<i64, StoreError> {
    let rows: Vec<(i64,)> = loops
        .all(
            query(include_str!("note_instance.sql"))
                .bind(instance.to_owned())
                .bind(ttl),
        )
        .await?;
    Ok(rows.first().map_or(1, |(count,)| *count))
}

pub(crate) async fn forget_instance(loops: &LoopStore, instance: &str) -> Result<(), StoreError> {
    loops
        .execute(query(include_str!("forget_instance.sql")).bind(instance.to_owned()))
        .await?;
    Ok(())
}

/// Head and watermark of every admission shard.
pub(crate) async fn heads(loops: &LoopStore) -> Result<Vec<(i16, i64, i64)>, StoreError> {
    loops
        .all(query(include_str!("heads.sql")).bind(Stream::Dispatch.code()))
        .await
}

/// Where the holder of an admission shard is reached.
pub(crate) async fn holder(tx: &mut TenantTx, shard: i16) -> Result<Option<String>, StoreError> {
    let holder: Option<(String,)> = tx
        .optional(
            query(include_str!("holder.sql"))
                .bind(Stream::Dispatch.code())
                .bind(shard),
        )
        .await?;
    Ok(holder.map(|(address,)| address))
}

/// Name, queue, state and pushes of those of these entries that there are.
pub(crate) async fn entries_of(
    tx: &mut TenantTx,
    queues: Vec<String>,
    names: Vec<String>,
) -> Result<Vec<(String, String, i16, i32)>, StoreError> {
    tx.all(
        query(include_str!("entries_of.sql"))
            .bind(queues)
            .bind(names),
    )
    .await
}

/// A place among those wanted, counted from 1, with a version found there: its attempt, the encoded output, and which mapped
/// child made it, -1 for none.
pub(crate) type VersionRow = (i64, Option<Uuid>, Option<Vec<u8>>, i32);

/// What is found of these; of a mapped asset several in one place.
pub(crate) async fn latest_versions(
    loops: &LoopStore,
    wanted: &[Wanted],
) -> Result<Vec<VersionRow>, StoreError> {
    let column = |field: fn(&Wanted) -> &str| wanted.iter().map(field).collect::<Vec<_>>();
    let select = query(include_str!("latest_versions.sql"))
        .bind(column(|wanted| &wanted.tenant))
        .bind(column(|wanted| &wanted.workspace))
        .bind(column(|wanted| &wanted.asset_key))
        .bind(column(|wanted| &wanted.partition_key))
        .bind(
            wanted
                .iter()
                .map(|wanted| wanted.pinned)
                .collect::<Vec<_>>(),
        );
    loops.all(select).await
}

/// The encoded plan, if it is stored.
pub(crate) async fn read_plan(
    loops: &LoopStore,
    plan: &PlanRef,
) -> Result<Option<Vec<u8>>, StoreError> {
    let read = query(include_str!("read_plan.sql"))
        .bind(plan.tenant.as_str())
        .bind(plan.workspace.as_str())
        .bind(plan.plan_id.as_bytes().as_slice());
    let rows: Vec<(Vec<u8>,)> = loops.all(read).await?;
    Ok(rows.into_iter().next().map(|(plan,)| plan))
}
