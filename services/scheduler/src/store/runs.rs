//! Runs.

use servo_model::states::{RunState, TransitionReason};
use servo_model::{RunId, ShardId, TenantId, TenantScope, Timestamp};
use servo_store::sqlx::FromRow;
use servo_store::{FencedTx, LoopStore, StoreError, TenantTx, query};
use uuid::Uuid;

use super::shards::all_shards;
use crate::core::StoppedBy;

const STOPPED_BY_PRINCIPAL: i16 = 1;
const STOPPED_BY_TIME: i16 = 2;

/// The code under which a row stores who stopped the run.
pub(crate) const fn stopped_by_code(by: StoppedBy) -> i16 {
    match by {
        StoppedBy::Principal => STOPPED_BY_PRINCIPAL,
        StoppedBy::Time => STOPPED_BY_TIME,
    }
}

/// The columns from which a lane restores a run.
#[derive(Debug, FromRow)]
pub(crate) struct StoredRun {
    pub run_number: i64,
    pub tenant: TenantId,
    pub workspace: String,
    pub run_id: Uuid,
    pub state: i16,
    pub reason: i16,
    pub stopped_by: Option<i16>,
    pub version: i64,
    pub plan_id: Option<Vec<u8>>,
    pub request: Vec<u8>,
    pub error: Option<String>,
    pub error_ordinal: Option<i32>,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Why the run is set aside.
    pub set_aside: Option<String>,
}

impl StoredRun {
    pub(crate) fn id(&self) -> RunId {
        RunId::from_bytes(self.run_id.into_bytes())
    }

    pub(crate) fn states(&self) -> Option<(RunState, TransitionReason)> {
        Some((
            RunState::from_code(self.state)?,
            TransitionReason::from_code(self.reason)?,
        ))
    }

    pub(crate) fn stopped_by(&self) -> Option<StoppedBy> {
        self.stopped_by.map(|code| match code {
            STOPPED_BY_TIME => StoppedBy::Time,
            _ => StoppedBy::Principal,
        })
    }

    pub(crate) fn plan_id(&self) -> Option<[u8; 32]> {
        self.plan_id.as_deref()?.try_into().ok()
    }
}

/// Lists the open runs of a shard, which its new holder continues.
pub(crate) async fn list_open(
    loops: &LoopStore,
    shard: ShardId,
) -> Result<Vec<StoredRun>, StoreError> {
    loops
        .all(query(include_str!("open_runs_of_shard.sql")).bind(shard))
        .await
}

/// Finds runs by tenant and id; `None` matches any tenant.
pub(crate) async fn find_many(
    loops: &LoopStore,
    runs: &[(Option<&TenantId>, Uuid)],
) -> Result<Vec<StoredRun>, StoreError> {
    let tenants: Vec<&str> = runs
        .iter()
        .map(|(tenant, _)| tenant.map_or("", TenantId::as_str))
        .collect();
    let ids: Vec<Uuid> = runs.iter().map(|(_, run_id)| *run_id).collect();
    let select = query(include_str!("find_runs_by_id.sql"))
        .bind(tenants)
        .bind(ids);
    loops.all(select).await
}

pub(crate) async fn find_by_number(
    loops: &LoopStore,
    run_number: i64,
) -> Result<Option<StoredRun>, StoreError> {
    let mut rows: Vec<StoredRun> = loops
        .all(query(include_str!("find_run_by_number.sql")).bind(run_number))
        .await?;
    Ok(rows.pop())
}

/// Lists the numbers of the newest runs of each shard.
pub(crate) async fn sample(
    loops: &LoopStore,
    shards: &[ShardId],
    per_shard: u32,
) -> Result<Vec<i64>, StoreError> {
    let select = query(include_str!("sample_runs.sql"))
        .bind(shards)
        .bind(i64::from(per_shard));
    let rows: Vec<(i64,)> = loops.all(select).await?;
    Ok(rows.into_iter().map(|(number,)| number).collect())
}

/// A run by its tenant, workspace and id.
pub(crate) type RunAddress<'a> = (&'a TenantId, &'a str, RunId);

/// Returns the versions of those runs that exist, each with the number of its address, from 1.
pub(crate) async fn list_versions(
    loops: &LoopStore,
    runs: &[RunAddress<'_>],
) -> Result<Vec<(i64, i64)>, StoreError> {
    let tenants: Vec<&str> = runs.iter().map(|(tenant, _, _)| tenant.as_str()).collect();
    let workspaces: Vec<&str> = runs.iter().map(|(_, workspace, _)| *workspace).collect();
    let ids: Vec<Uuid> = runs
        .iter()
        .map(|(_, _, id)| Uuid::from_bytes(*id.as_bytes()))
        .collect();
    let select = query(include_str!("run_versions.sql"))
        .bind(tenants)
        .bind(workspaces)
        .bind(ids);
    loops.all(select).await
}

/// Records why a run is set aside.
pub(crate) async fn set_aside(
    tx: &mut FencedTx,
    tenant: &TenantScope,
    run_id: RunId,
    reason: String,
) -> Result<(), StoreError> {
    let update = query(include_str!("set_aside.sql"))
        .bind(Uuid::from_bytes(*run_id.as_bytes()))
        .bind(tenant)
        .bind(reason);
    tx.execute(update).await?;
    Ok(())
}

/// The columns of a run that the API shows.
#[derive(Debug, FromRow)]
pub(crate) struct RunRecord {
    pub run_id: Uuid,
    pub run_number: i64,
    pub state: i16,
    pub reason: i16,
    pub version: i64,
    pub request: Vec<u8>,
    pub plan_id: Option<Vec<u8>>,
    pub plan_fingerprint: Option<String>,
    pub deployment_id: Option<String>,
    pub counts: Option<Vec<i32>>,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
    pub set_aside: Option<String>,
    /// A check of severity ERROR failed.
    pub flagged: bool,
}

pub(crate) async fn find(
    tx: &mut TenantTx,
    workspace: &str,
    run_id: RunId,
) -> Result<Option<RunRecord>, StoreError> {
    let select = query(include_str!("find_run.sql"))
        .bind(Uuid::from_bytes(*run_id.as_bytes()))
        .bind(workspace);
    tx.optional(select).await
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum RunOrder {
    NewestFirst,
    OldestFirst,
}

/// The last run of a page: when it was accepted, and its number.
pub(crate) type RunCursor = (Timestamp, i64);

#[derive(Debug, FromRow)]
pub(crate) struct ListedRun {
    #[sqlx(flatten)]
    pub run: RunRecord,
    /// How many runs the statement examined, whether it returned them or not.
    pub examined: i64,
}

/// The first state in which a run has ended; the index of open runs contains the states before it.
const FIRST_END: i16 = RunState::Succeeded.code();

/// Lists runs after the cursor, and examines up to `limit` of them for those in these states.
pub(crate) async fn list(
    tx: &mut TenantTx,
    (tenant, workspace): (&TenantId, &str),
    order: RunOrder,
    (created_at, number): RunCursor,
    states: Option<Vec<i16>>,
    limit: usize,
) -> Result<Vec<ListedRun>, StoreError> {
    let open = states
        .as_ref()
        .is_some_and(|states| states.iter().all(|state| *state < FIRST_END));
    let statement = match (order, open) {
        (RunOrder::NewestFirst, false) => include_str!("list_runs.sql"),
        (RunOrder::NewestFirst, true) => include_str!("list_open_runs.sql"),
        (RunOrder::OldestFirst, false) => include_str!("list_runs_oldest_first.sql"),
        (RunOrder::OldestFirst, true) => include_str!("list_open_runs_oldest_first.sql"),
    };
    let select = query(statement)
        .bind(tenant)
        .bind(workspace)
        .bind(created_at)
        .bind(number)
        .bind(states)
        .bind(limit as i64);
    tx.all(if open {
        select.bind(all_shards())
    } else {
        select
    })
    .await
}
