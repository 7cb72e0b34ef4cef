//! Limits on runs: locking, counting and the order in which waiting runs start.

use std::collections::{BTreeMap, HashMap, HashSet};

use servo_model::{RunId, TenantId, Timestamp};
use servo_store::{LoopStore, LoopTx, StoreError, TenantTx, query};
use uuid::Uuid;

use super::shards::all_shards;
use crate::core::InUse;

/// The channel that wakes instances with waiting runs when a run with a limit ends.
pub(crate) const CAPACITY_CHANNEL: &str = "servo_scheduler_capacity";

/// Locks the run limits of these tenants until the transaction ends.
pub(crate) async fn lock<'a>(
    tx: &mut LoopTx,
    tenants: impl Iterator<Item = &'a TenantId>,
) -> Result<(), StoreError> {
    let tenants: Vec<&str> = tenants.map(TenantId::as_str).collect();
    tx.execute(query(include_str!("lock_run_limits.sql")).bind(tenants))
        .await?;
    Ok(())
}

/// Counts what the tenants use, up to the daily limit of each. Returns the time of the count as
/// well.
pub(crate) async fn count_in_use(
    tx: &mut LoopTx,
    daily_limits: &BTreeMap<TenantId, i64>,
) -> Result<(HashMap<TenantId, InUse>, Timestamp), StoreError> {
    let tenants: Vec<&str> = daily_limits.keys().map(TenantId::as_str).collect();
    let count = query(include_str!("count_runs_in_use.sql"))
        .bind(tenants)
        .bind(daily_limits.values().copied().collect::<Vec<_>>())
        .bind(all_shards());
    let rows: Vec<(TenantId, i64, i64, i64, Timestamp)> = tx.all(count).await?;
    let at = rows
        .iter()
        .map(|row| row.4)
        .max()
        .unwrap_or(Timestamp::UNIX_EPOCH);
    let in_use = rows
        .into_iter()
        .map(|(tenant, concurrent, waiting, today, _)| {
            let in_use = InUse {
                concurrent: saturate(concurrent),
                waiting: saturate(waiting),
                today: saturate(today),
            };
            (tenant, in_use)
        });
    Ok((in_use.collect(), at))
}

/// Lists the waiting runs that may start now. Each tenant comes with its limit on concurrent runs.
pub(crate) async fn list_startable(
    loops: &LoopStore,
    tenants: &[(&TenantId, u32)],
) -> Result<HashSet<RunId>, StoreError> {
    let names: Vec<&str> = tenants.iter().map(|(tenant, _)| tenant.as_str()).collect();
    let limits: Vec<i64> = tenants.iter().map(|(_, max)| i64::from(*max)).collect();
    let select = query(include_str!("startable_runs.sql"))
        .bind(names)
        .bind(limits)
        .bind(all_shards());
    let rows: Vec<(Uuid,)> = loops.all(select).await?;
    Ok(rows
        .into_iter()
        .map(|(run,)| RunId::from_bytes(run.into_bytes()))
        .collect())
}

/// The usage of a tenant's limits on runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TenantRuns {
    pub in_use: InUse,
    /// The concurrent runs that belong to backfills.
    pub backfills: u32,
}

/// Counts a tenant's runs; those of today only up to `today_max`.
pub(crate) async fn count_tenant_runs(
    tx: &mut TenantTx,
    tenant: &TenantId,
    today_max: i64,
) -> Result<TenantRuns, StoreError> {
    let count = query(include_str!("count_tenant_runs.sql"))
        .bind(tenant)
        .bind(all_shards())
        .bind(today_max);
    let (concurrent, waiting, today, backfills): (i64, i64, i64, i64) = tx.one(count).await?;
    Ok(TenantRuns {
        in_use: InUse {
            concurrent: saturate(concurrent),
            waiting: saturate(waiting),
            today: saturate(today),
        },
        backfills: saturate(backfills),
    })
}

/// The runs ahead of a waiting run.
#[derive(Debug)]
pub(crate) struct RunsAhead {
    pub started: i64,
    pub waiting: i64,
    /// Some of the started ones.
    pub started_runs: Vec<Uuid>,
}

pub(crate) async fn runs_ahead(
    tx: &mut TenantTx,
    tenant: &TenantId,
    run_number: i64,
    started_runs_max: i64,
) -> Result<RunsAhead, StoreError> {
    let count = query(include_str!("runs_ahead.sql"))
        .bind(tenant)
        .bind(all_shards())
        .bind(run_number)
        .bind(started_runs_max);
    let (started, waiting, started_runs) = tx.one(count).await?;
    Ok(RunsAhead {
        started,
        waiting,
        started_runs,
    })
}

/// Wakes all instances with waiting runs.
pub(crate) async fn notify_capacity(loops: &LoopStore) -> Result<u64, StoreError> {
    loops
        .execute(query(include_str!("notify_capacity.sql")).bind(CAPACITY_CHANNEL))
        .await
}

fn saturate(count: i64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
