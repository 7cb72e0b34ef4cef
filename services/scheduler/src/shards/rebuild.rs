//! Rebuilding: the rows of every shard are emptied, and its events folded anew by the same code that folds them
//! every day. No scheduler may hold a shard meanwhile.
//!
//! Runs of days whose events were archived and dropped keep their rows. Partitions are merges over all runs: they are
//! emptied only while the ledger is whole, and merged into otherwise.

use std::collections::BTreeMap;
use std::time::Duration;

use servo_model::Stream;
use servo_store::sqlx::postgres::PgArguments;
use servo_store::sqlx::query::Query;
use servo_store::sqlx::{AssertSqlSafe, Postgres};
use servo_store::{FromAnyRow, Lease, LeaseTtl, Leases, LoopStore, Store, StoreError, query};
use ulid::Ulid;

use super::lane::{Lane, Shared};
use super::shard::run_number;
use super::{LaneContext, Plans, Unreadable};
use crate::core::Limits;
use crate::metrics::Metrics;

/// What the fold writes.
const TABLES: [&str; 6] = [
    "runs",
    "tasks",
    "materializations",
    "partitions",
    "check_results",
    "run_key_conflicts",
];

/// How many runs are deleted by one statement; a run may have ten thousand tasks.
const RUNS_PER_DELETE: i64 = 10;
const LEASE: Duration = Duration::from_secs(30);
/// What one statement over a whole table may take; the leases are renewed meanwhile.
const STATEMENT_MAX: &str = "1h";

/// A table before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    pub table: &'static str,
    pub rows_before: i64,
    pub rows_after: i64,
    /// Every row is what it was.
    pub equal: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    #[error(
        "a scheduler holds {0} of the shards; stop all schedulers, wait until their leases have run out, and try again"
    )]
    Held(usize),
    #[error(
        "shard {0} holds an event that this version does not know; rebuild with the newest version in use"
    )]
    Unreadable(i16),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Folds all tables of the scheduler anew, and says which of them were different. `done` hears of each shard.
pub async fn rebuild(
    store: &Store,
    mut done: impl FnMut(i16),
) -> Result<Vec<Rebuilt>, RebuildError> {
    let ttl = LeaseTtl::new(LEASE).map_err(|fault| StoreError::Refused(fault.to_string()))?;
    let holder = format!("rebuild-{}", Ulid::generate());
    let leases = Leases::new(
        store,
        Stream::Execution,
        &holder,
        "https://rebuild.invalid",
        ttl,
    );
    let shards: Vec<i16> = (0..Stream::Execution.shards()).collect();
    let held = leases.acquire(&shards, shards.len()).await?;
    let kept = keep_alive(leases.clone(), held.clone());
    let result = match shards.len() - held.len() {
        0 => rebuild_held(store, &held, &mut done).await,
        missing => Err(RebuildError::Held(missing)),
    };
    kept.abort();
    for lease in held {
        leases.release(lease).await?;
    }
    result
}

async fn rebuild_held(
    store: &Store,
    held: &[Lease],
    done: &mut impl FnMut(i16),
) -> Result<Vec<Rebuilt>, RebuildError> {
    let loops = store.loops();
    let before = digests(loops).await?;
    // Nobody listens: what has no plan yet is planned by whoever takes the shard next.
    let (unplanned, _) = tokio::sync::mpsc::unbounded_channel();
    let (_, limits) = tokio::sync::watch::channel(Limits::none());
    let (plans, metrics) = (Plans::default(), Metrics::default());
    let context = LaneContext {
        plans,
        unplanned,
        metrics,
        listeners: None,
        limits,
    };
    let unreadable = Unreadable::default();
    let shared = Shared {
        unreadable: unreadable.clone(),
        ..Shared::default()
    };
    let mut lane = Lane::new(store.clone(), context, shared);
    if empty_all(loops, held).await? {
        patiently::<()>(loops, query(include_str!("../store/empty_partitions.sql"))).await?;
    }
    for lease in held {
        lane.try_load_shard(lease.clone()).await?;
        if unreadable.contains(lease.shard()) {
            return Err(RebuildError::Unreadable(lease.shard()));
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

/// Goes back to where the events of each shard begin, and deletes what was folded from there on. Answers whether the
/// ledger is whole.
async fn empty_all(loops: &LoopStore, held: &[Lease]) -> Result<bool, StoreError> {
    let mut beginnings = Vec::with_capacity(held.len());
    for lease in held {
        beginnings.push(rewind(loops, lease).await?);
    }
    let first = |(lease, beginning): (&Lease, &i64)| run_number(lease.shard(), beginning + 1);
    let firsts: Vec<i64> = held.iter().zip(&beginnings).map(first).collect();
    let delete = query(include_str!("../store/empty_materializations.sql"))
        .bind(held.iter().map(Lease::shard).collect::<Vec<_>>())
        .bind(&firsts)
        .bind(i64::from(Stream::Execution.shards()));
    patiently::<()>(loops, delete).await?;
    for (lease, first) in held.iter().zip(firsts) {
        empty(loops, lease.shard(), first).await?;
    }
    Ok(beginnings.iter().all(|beginning| *beginning == 0))
}

/// Answers the position before the first event.
async fn rewind(loops: &LoopStore, lease: &Lease) -> Result<i64, StoreError> {
    let rewind = query(include_str!("../store/rewind.sql"))
        .bind(Stream::Execution.code())
        .bind(lease.shard())
        .bind(lease.epoch())
        .bind(lease.holder());
    let rewound: Vec<(i64,)> = patiently(loops, rewind).await?;
    Ok(rewound.first().map_or(0, |(beginning,)| *beginning))
}

/// Deletes the runs of a shard from a number on, with what was folded of them.
async fn empty(loops: &LoopStore, shard: i16, mut first: i64) -> Result<(), StoreError> {
    loop {
        let delete = query(include_str!("../store/empty_shard.sql"))
            .bind(shard)
            .bind(first)
            .bind(RUNS_PER_DELETE);
        let deleted: Vec<(Option<i64>,)> = patiently(loops, delete).await?;
        let Some(last) = deleted.first().and_then(|(last,)| *last) else {
            return Ok(());
        };
        first = last + 1;
    }
}

/// Nobody waits for a rebuild, so its statements may take longer than a role's do.
async fn patiently<T: FromAnyRow>(
    loops: &LoopStore,
    statement: Query<'_, Postgres, PgArguments>,
) -> Result<Vec<T>, StoreError> {
    let mut tx = loops.begin().await?;
    tx.execute(query(include_str!("../store/be_patient.sql")).bind(STATEMENT_MAX))
        .await?;
    let rows = tx.all(statement).await?;
    tx.commit().await?;
    Ok(rows)
}

fn keep_alive(leases: Leases, held: Vec<Lease>) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(LEASE / 3).await;
            if let Err(error) = leases.renew(held.clone()).await {
                tracing::warn!(%error, "the leases of the rebuild could not be renewed");
            }
        }
    })
}

/// How many rows each table has, and what all of them together hash to.
async fn digests(loops: &LoopStore) -> Result<BTreeMap<&'static str, (i64, String)>, StoreError> {
    let mut digests = BTreeMap::new();
    for table in TABLES {
        let select = include_str!("../store/digest.sql")
            .replace("scheduler.runs", &format!("scheduler.{table}"));
        let rows: Vec<(i64, String)> = patiently(loops, query(AssertSqlSafe(select))).await?;
        digests.extend(rows.into_iter().next().map(|digest| (table, digest)));
    }
    Ok(digests)
}
