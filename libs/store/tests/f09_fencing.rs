//! Two holders of one lease: after a takeover, the old holder cannot write a single row. (F9)

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod common;

use std::time::{Duration, Instant};

use common::{OwnPostgres, connect, count, event, is_full, leases, shard};
use futures::future::join_all;
use nix::sys::signal::Signal;
use servo_local::wait::{LIMIT, Wait, until_true};
use servo_local::{Child, PostgresOptions};
use servo_model::{Epoch, EventType, Position, Service, ShardId};
use servo_store::{DatabaseConfig, FencedTx, Lease, LeaseTtl, Leases, Store, StoreError, query};

/// How long after the expiry of a lease another holder must have it, measured in `make chaos`.
const TAKEOVER_MARGIN: Duration = Duration::from_secs(3);
/// The number of statements of a fold, before each of which the old holder is stopped.
const STATEMENTS: usize = 5;
const CASES_AT_ONCE: usize = 32;

/// Opens separate connections for each case, because a connection killed by a timeout must not end
/// the leases of another case.
fn own_store(config: &DatabaseConfig) -> Store {
    let config = DatabaseConfig {
        loops_connections: 2,
        acquire_timeout_ms: 20_000,
        ..config.clone()
    };
    Store::connect(Service::Scheduler, &config).unwrap()
}

/// Writes a row that records its epoch.
async fn write_row(
    tx: &mut FencedTx,
    case: i64,
    ordinal: i32,
    epoch: Epoch,
) -> Result<u64, StoreError> {
    let insert =
        "INSERT INTO scheduler.tasks (run_number, ordinal, tenant, state, reason, attempt, changed_at)
        VALUES ($1, $2, 'acme', 1, 1, $3, clock_timestamp())";
    tx.execute(
        query(insert)
            .bind(case)
            .bind(ordinal)
            .bind(epoch.get() as i32),
    )
    .await
}

/// Acquires the shard as soon as possible.
async fn take_over(store: &Store, holder: &str, shard: ShardId) -> Lease {
    let leases = leases(store, holder);
    let mut wait = Wait::within(LIMIT, "the shard's lease to expire");
    loop {
        if let Some(lease) = leases.acquire(&[shard], 1).await.unwrap().pop() {
            return lease;
        }
        wait.pause().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f09_a_holder_paused_between_any_two_statements_writes_nothing() {
    let own = OwnPostgres::start(PostgresOptions::without_durability()).await;
    let config = own.config();
    let cases = count(1_000, 15);
    let mut longest = Duration::ZERO;
    for wave in (0..cases).collect::<Vec<_>>().chunks(CASES_AT_ONCE) {
        let running = wave
            .iter()
            .map(|case| tokio::spawn(pause_and_continue(config.clone(), *case)));
        for takeover in join_all(running).await {
            longest = longest.max(takeover.unwrap());
        }
    }
    report("paused holders", cases, longest);
    let stale: i64 = sqlx::query_scalar("SELECT count(*) FROM scheduler.tasks WHERE ordinal < 10")
        .fetch_one(&mut connect(&own.postgres.admin_url()).await)
        .await
        .unwrap();
    assert_eq!(stale, 0);
}

/// Stops Anna at one point of her fold until Ben has taken over and folded; returns how long Ben
/// waited.
async fn pause_and_continue(config: DatabaseConfig, case: usize) -> Duration {
    let (old, new) = (own_store(&config), own_store(&config));
    // The cases of a wave use different shards.
    let shard = shard((case % CASES_AT_ONCE) as u32);
    let anna = take_over(&old, &format!("anna {case}"), shard).await;
    let held_since = Instant::now();
    let key = format!("case {case}");
    old.ledger()
        .append(vec![event(EventType::TaskFinished, shard, "acme", &key)])
        .await
        .unwrap();
    let ben = async {
        let lease = take_over(&new, &format!("ben {case}"), shard).await;
        let waited = held_since.elapsed();
        assert!(lease.epoch() > anna.epoch());
        fold(&new, &lease, case as i64, None, 10).await.unwrap();
        (lease, waited)
    };
    let (refused, (lease, waited)) = stop_in_fold(&old, &anna, case, ben).await;
    assert!(
        matches!(
            refused,
            StoreError::LeaseLost(_) | StoreError::Unavailable(_)
        ),
        "case {case}: {refused}"
    );
    leases(&new, &format!("ben {case}"))
        .release(lease)
        .await
        .unwrap();
    old.close().await;
    new.close().await;
    waited
}

/// Begins, fences, writes two rows and commits, but pauses before statement `case % 5` until
/// `takeover` is done.
async fn stop_in_fold<T>(
    store: &Store,
    lease: &Lease,
    case: usize,
    takeover: impl Future<Output = T>,
) -> (StoreError, T) {
    let (paused, resume) = (tokio::sync::Notify::new(), tokio::sync::Notify::new());
    let stop = PausePoint {
        before: case % STATEMENTS,
        paused: &paused,
        resume: &resume,
    };
    let others = async {
        paused.notified().await;
        let done = takeover.await;
        resume.notify_one();
        done
    };
    let folding = async {
        let folded = fold(store, lease, case as i64, Some(stop), 0).await;
        // On a machine so slow that the lease expired before the pause was reached, there is no
        // pause.
        paused.notify_one();
        folded
    };
    let (folded, done) = tokio::join!(folding, others);
    (folded.expect_err("a stale fold was committed"), done)
}

struct PausePoint<'a> {
    before: usize,
    paused: &'a tokio::sync::Notify,
    resume: &'a tokio::sync::Notify,
}

impl PausePoint<'_> {
    async fn reached(stop: &Option<PausePoint<'_>>, statement: usize) {
        if let Some(stop) = stop.as_ref().filter(|stop| stop.before == statement) {
            stop.paused.notify_one();
            stop.resume.notified().await;
        }
    }
}

async fn fold(
    store: &Store,
    lease: &Lease,
    case: i64,
    stop: Option<PausePoint<'_>>,
    first_ordinal: i32,
) -> Result<(), StoreError> {
    let mark = lease.watermark();
    PausePoint::reached(&stop, 0).await;
    let mut tx = store.loops().fence(lease, mark, mark).await?;
    PausePoint::reached(&stop, 1).await;
    write_row(&mut tx, case, first_ordinal, lease.epoch()).await?;
    PausePoint::reached(&stop, 2).await;
    write_row(&mut tx, case, first_ordinal + 1, lease.epoch()).await?;
    PausePoint::reached(&stop, 3).await;
    tx.advance(mark.next()).await?;
    PausePoint::reached(&stop, 4).await;
    tx.commit().await
}

fn report(what: &str, cases: usize, longest: Duration) {
    let limit = LeaseTtl::MIN + TAKEOVER_MARGIN;
    eprintln!("{what}: {cases} cases, longest takeover {longest:?} (limit {limit:?})");
    if is_full() {
        assert!(longest < limit, "takeover took {longest:?}");
    }
}

const HOLDER_CONFIG: &str = "SERVO_TEST_HOLDER";

#[tokio::test(flavor = "multi_thread")]
async fn f09_a_stopped_process_writes_nothing_after_takeover() {
    let own = OwnPostgres::start(PostgresOptions::without_durability()).await;
    let store = own_store(&own.config());
    let cases = count(20, 2);
    let mut longest = Duration::ZERO;
    for number in 0..cases {
        longest = longest.max(stop_and_continue(&own, &store, shard(number as u32)).await);
    }
    report("stopped processes", cases, longest);
}

async fn stop_and_continue(own: &OwnPostgres, store: &Store, shard: ShardId) -> Duration {
    let mut holder = spawn_holder(own, shard);
    until_true("the holder to write its first row", async || {
        rows(store, shard).await > 0
    })
    .await;
    holder.signal(Signal::SIGSTOP).unwrap();
    let stopped = Instant::now();
    let lease = take_over(store, "ben", shard).await;
    let waited = stopped.elapsed();
    let at_takeover = rows(store, shard).await;
    holder.signal(Signal::SIGCONT).unwrap();
    let ended =
        tokio::task::spawn_blocking(move || holder.wait_for(Duration::from_secs(30)).unwrap());
    let status = ended
        .await
        .unwrap()
        .expect("the old holder did not notice that it lost its lease");
    assert!(status.success(), "{status}");
    assert_eq!(
        rows(store, shard).await,
        at_takeover,
        "the old holder wrote rows after the takeover"
    );
    leases(store, "ben").release(lease).await.unwrap();
    waited
}

async fn rows(store: &Store, shard: ShardId) -> i64 {
    let select = "SELECT count(*) FROM scheduler.tasks WHERE run_number = $1";
    let rows: Vec<(i64,)> = store
        .loops()
        .all(query(select).bind(run_number(shard)))
        .await
        .unwrap();
    rows[0].0
}

/// The run whose rows the holder of a shard writes.
fn run_number(shard: ShardId) -> i64 {
    shard.get().into()
}

/// Starts this test binary again, running only [`holder_process`].
fn spawn_holder(own: &OwnPostgres, shard: ShardId) -> Child {
    let mut command = Child::command(&std::env::current_exe().unwrap());
    command.args(["--exact", "holder_process", "--ignored", "--nocapture"]);
    let setup = format!("{}\n{}\n{shard}", own.url(), own.postgres.password());
    command.env(HOLDER_CONFIG, setup);
    Child::spawn("holder", command).unwrap()
}

/// Folds continuously and renews its lease, until the lease is lost.
#[tokio::test]
#[ignore = "the process that f09_a_stopped_process_writes_nothing_after_takeover stops"]
async fn holder_process() {
    let setup = std::env::var(HOLDER_CONFIG).unwrap();
    let [url, password, number] = setup.lines().collect::<Vec<_>>().try_into().unwrap();
    let store = own_store(&DatabaseConfig::new(url, password));
    let anna = leases(&store, "anna");
    let mut lease = take_over(&store, "anna", shard(number.parse().unwrap())).await;
    for ordinal in 0.. {
        match fold_one_row_and_renew(&store, &anna, lease, ordinal).await {
            Ok(renewed) => lease = renewed,
            Err(StoreError::LeaseLost(_) | StoreError::Unavailable(_)) => break,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn fold_one_row_and_renew(
    store: &Store,
    leases: &Leases,
    lease: Lease,
    ordinal: i32,
) -> Result<Lease, StoreError> {
    let mut tx = store
        .loops()
        .fence(&lease, Position::START, Position::START)
        .await?;
    write_row(&mut tx, run_number(lease.shard()), ordinal, lease.epoch()).await?;
    tx.commit().await?;
    let held = leases.renew(vec![lease]).await?.held.pop();
    held.ok_or_else(|| StoreError::LeaseLost("not renewed".to_owned()))
}
