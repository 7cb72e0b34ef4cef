//! Rebuilding the projections: the rows of every shard are deleted and its events are folded again
//! by the code of the lanes. No scheduler may hold a shard during a rebuild.
//!
//! Runs whose events were archived and dropped keep their rows. Partition rows are merges over all
//! runs: they are deleted only while the ledger is complete, and merged into otherwise.

use std::collections::BTreeMap;
use std::time::Duration;

use servo_model::{Position, ShardId, Stream};
use servo_store::{Lease, LeaseTtl, Leases, LoopStore, Store, StoreError};
use ulid::Ulid;

use super::lane::{Lane, Shared};
use super::shard::run_number;
use super::{LaneContext, Unreadable};
use crate::core::Limits;
use crate::metrics::Metrics;
use crate::plans::Plans;
use crate::store::rebuild as store;

/// The tables that the fold writes.
const TABLES: [&str; 6] = [
    "runs",
    "tasks",
    "materializations",
    "partitions",
    "check_results",
    "run_key_conflicts",
];

/// How many runs one statement deletes; a run may have ten thousand tasks.
const RUNS_PER_DELETE: i64 = 10;
const LEASE: Duration = Duration::from_secs(30);

/// A table before and after the rebuild.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    pub table: &'static str,
    pub rows_before: i64,
    pub rows_after: i64,
    /// Whether every row is unchanged.
    pub equal: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    #[error(
        "a scheduler holds {0} of the shards; stop all schedulers, wait until their leases have expired, and try again"
    )]
    Held(usize),
    #[error(
        "shard {0} contains an event or a state that this version does not know; rebuild with the newest version in use"
    )]
    Unreadable(ShardId),
    #[error(
        "the ledger lacks events of shard {0}, so its tables are incomplete; restore the ledger and rebuild again"
    )]
    Incomplete(ShardId),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Rebuilds all tables of the scheduler and reports which of them changed. `done` is called for
/// each shard.
pub async fn rebuild(
    database: &Store,
    mut done: impl FnMut(ShardId),
) -> Result<Vec<Rebuilt>, RebuildError> {
    let ttl = LeaseTtl::new(LEASE).map_err(|fault| StoreError::Refused(fault.to_string()))?;
    let holder = format!("rebuild-{}", Ulid::generate());
    let leases = Leases::new(
        database.loops(),
        Stream::Execution,
        &holder,
        "https://rebuild.invalid",
        ttl,
    );
    let shards: Vec<ShardId> = Stream::Execution.shards().collect();
    let held = leases.acquire(&shards, shards.len()).await?;
    let renewals = keep_alive(leases.clone(), held.clone());
    let result = match shards.len() - held.len() {
        0 => rebuild_held(database, &held, &mut done).await,
        missing => Err(RebuildError::Held(missing)),
    };
    renewals.abort();
    for lease in held {
        leases.release(lease).await?;
    }
    result
}

async fn rebuild_held(
    database: &Store,
    held: &[Lease],
    done: &mut impl FnMut(ShardId),
) -> Result<Vec<Rebuilt>, RebuildError> {
    let loops = database.loops();
    let before = digests(loops).await?;
    // Not read: runs without a plan are planned by the next holder of their shard.
    let (plan_requests, _) = tokio::sync::mpsc::channel(1);
    let (_, limits) = tokio::sync::watch::channel(Limits::none());
    let (plans, metrics) = (Plans::default(), Metrics::default());
    let context = LaneContext {
        plans,
        plan_requests,
        metrics,
        bus_doorbell: None,
        limits,
    };
    let unreadable = Unreadable::default();
    let shared = Shared {
        unreadable: unreadable.clone(),
        ..Shared::default()
    };
    let mut lane = Lane::new(database.clone(), context, shared);
    if empty_all(loops, held).await? {
        store::delete_partitions(loops).await?;
    }
    for lease in held {
        let loaded = lane.try_load_shard(lease.clone()).await;
        if unreadable.contains(lease.shard()) {
            return Err(RebuildError::Unreadable(lease.shard()));
        }
        loaded?;
        if !lane.shards.contains_key(&lease.shard()) {
            return Err(RebuildError::Incomplete(lease.shard()));
        }
        lane.drop_shard(lease.shard());
        done(lease.shard());
    }
    let after = digests(loops).await?;
    let compare = |table: &'static str| {
        let (was, is) = (&before[table], &after[table]);
        Rebuilt {
            table,
            rows_before: was.0,
            rows_after: is.0,
            equal: was == is,
        }
    };
    Ok(TABLES.map(compare).to_vec())
}

/// Rewinds each shard to its first event and deletes the rows that were folded from there on.
/// Returns whether the ledger is complete.
async fn empty_all(loops: &LoopStore, held: &[Lease]) -> Result<bool, StoreError> {
    let mut beginnings = Vec::with_capacity(held.len());
    for lease in held {
        beginnings.push(store::rewind(loops, lease).await?);
    }
    let first =
        |(lease, beginning): (&Lease, &Position)| run_number(lease.shard(), beginning.next());
    let first_numbers: Vec<i64> = held.iter().zip(&beginnings).map(first).collect();
    let shards = held.iter().map(Lease::shard).collect();
    store::delete_materializations(loops, shards, &first_numbers).await?;
    for (lease, first) in held.iter().zip(first_numbers) {
        delete_runs(loops, lease.shard(), first).await?;
    }
    Ok(beginnings
        .iter()
        .all(|beginning| *beginning == Position::START))
}

/// Deletes the runs of a shard from a number on, with everything that was folded from them.
async fn delete_runs(loops: &LoopStore, shard: ShardId, mut first: i64) -> Result<(), StoreError> {
    while let Some(last) = store::delete_runs(loops, shard, first, RUNS_PER_DELETE).await? {
        first = last + 1;
    }
    Ok(())
}

fn keep_alive(leases: Leases, held: Vec<Lease>) -> tokio::task::JoinHandle<()> {
    servo_actor::spawn("rebuild leases", async move {
        loop {
            tokio::time::sleep(LEASE / 3).await;
            if let Err(error) = leases.renew(held.clone()).await {
                tracing::warn!(%error, "failed to renew the leases of the rebuild");
            }
        }
    })
}

/// The row count and hash of each table.
async fn digests(loops: &LoopStore) -> Result<BTreeMap<&'static str, (i64, String)>, StoreError> {
    let mut digests = BTreeMap::new();
    for table in TABLES {
        let digest = store::digest(loops, table).await?;
        digests.extend(digest.map(|digest| (table, digest)));
    }
    Ok(digests)
}
