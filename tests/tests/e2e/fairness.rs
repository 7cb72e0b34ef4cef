//! Fair shares in real time: tasks that sleep 100 ms on the 50 slots of one worker of all tenants.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use servo_client::worker::{Attempt, AttemptOutcome, Handler, Worker, WorkerConfig};
use servo_client::{Client, Credentials, Tls, api};
use servo_local::{LivenessTimings, LocalMesh, TENANT, wait};
use servo_model::Service;
use servo_tests::cpu_usage::CpuUsage;
use servo_tests::load::{is_retryable, trigger};
use servo_tests::manifest::{all_partitions, partitioned_fan_out, with_short_timeouts};
use servo_tests::running::durable;
use servo_tests::user::User;
use servo_tests::{full, invariants};

use crate::support::{Running, binaries};

/// The tenant with the small backlog.
const SMALL: &str = "small";
/// Tenants that trigger their first run when all slots are taken, some before the kill and some
/// after it.
const LATE: [&str; 20] = [
    "late0", "late1", "late2", "late3", "late4", "late5", "late6", "late7", "late8", "late9",
    "late10", "late11", "late12", "late13", "late14", "late15", "late16", "late17", "late18",
    "late19",
];
/// A tenant that runs before all others.
const ALONE: &str = "alone";
/// Workers of this tenant serve all tenants.
const ALL_TENANTS: &str = "-";
/// The asset whose tasks wait only for a slot.
const PART: &str = "fan/part";
const SLOTS: u32 = 50;
/// The average duration of a task. Tasks of exactly the same duration that begin together end
/// together, and then no slot becomes free for a whole duration, whatever the shares are.
const TASK_TIME: Duration = Duration::from_millis(100);
const TASK_TIME_SPREAD: f64 = 0.1;
/// Callers per tenant, and tasks of a run of the small one.
const FEEDERS: usize = 4;
const SMALL_WIDTH: usize = 100;
/// Above this share of all cores, the machine decides which tenant waits, not the shares.
const CPU_PERCENT_MAX: f64 = 60.0;

/// The length of a measurement, the backlog, and the tolerance of the shares.
struct Measure {
    time: Duration,
    large: usize,
    tolerance: f64,
}

fn measure() -> Measure {
    if full() {
        Measure {
            time: Duration::from_secs(60),
            large: 10_000,
            tolerance: 0.05,
        }
    } else {
        // One task weighs more in a shorter time.
        Measure {
            time: Duration::from_secs(6),
            large: 1_000,
            tolerance: 0.2,
        }
    }
}

/// The mean time between two slots that become free when all of them are taken.
fn mean_release() -> Duration {
    TASK_TIME / SLOTS
}

/// The tenant, the begin and the end of each attempt.
type Log = Arc<Mutex<Vec<(String, Instant, Instant)>>>;

struct Sleeper {
    began: Log,
}

impl Handler for Sleeper {
    async fn run(&self, attempt: Attempt) -> AttemptOutcome {
        let began = Instant::now();
        let index = {
            let mut log = self.began.lock().unwrap();
            log.push((attempt.envelope().tenant.clone(), began, began + TASK_TIME));
            log.len() - 1
        };
        tokio::time::sleep(TASK_TIME.mul_f64(rand::random_range(
            1.0 - TASK_TIME_SPREAD..1.0 + TASK_TIME_SPREAD,
        )))
        .await;
        self.began.lock().unwrap()[index].2 = Instant::now();
        AttemptOutcome::succeeded()
    }
}

/// Starts the only worker, which calls the dispatcher and the callback directly.
fn start_worker(mesh: &LocalMesh) -> Log {
    let (certificate, key) = mesh.worker_certificate(ALL_TENANTS).unwrap();
    let read = |path| std::fs::read_to_string(path).unwrap();
    let credentials = Credentials::Certificate {
        certificate: read(certificate),
        key: read(key),
    };
    let trust = Tls::new(read(mesh.ca_path())).server_name("localhost");
    let dispatcher =
        Client::connect(&mesh.address(Service::Dispatcher), &trust, credentials).unwrap();
    let callback = dispatcher.at(&mesh.address(Service::Callback)).unwrap();
    let info = api::WorkerInfo {
        name: "sleeper".to_owned(),
        slots: SLOTS,
        handlers: vec!["noop".to_owned()],
        ..Default::default()
    };
    let log = Log::default();
    let config = WorkerConfig::new(ALL_TENANTS, info);
    let worker = Worker::new(dispatcher, callback, config, Sleeper { began: log.clone() });
    tokio::spawn(async move { worker.run().await.unwrap() });
    log
}

/// Several callers of a tenant that trigger the next run when half of the last one is claimed.
struct Backlog {
    user: User,
    feeders: Vec<tokio::task::JoinHandle<()>>,
    runs: Arc<Mutex<Vec<String>>>,
}

impl Backlog {
    fn keep(user: &User, width: usize) -> Backlog {
        let waiting: Arc<Vec<AtomicUsize>> =
            Arc::new((0..FEEDERS).map(|_| AtomicUsize::new(width)).collect());
        let runs = Arc::default();
        let feeder = |own: usize| {
            tokio::spawn(feed(
                user.clone(),
                width,
                waiting.clone(),
                own,
                Arc::clone(&runs),
            ))
        };
        Backlog {
            user: user.clone(),
            feeders: (0..FEEDERS).map(feeder).collect(),
            runs,
        }
    }

    /// Shares mean something only while every tenant has more tasks than slots.
    fn assert_not_empty(&self) {
        assert!(
            self.feeders.iter().all(|feeder| !feeder.is_finished()),
            "a backlog is empty"
        );
    }

    /// Triggers no more runs, and waits until all triggered ones have ended.
    async fn end(&mut self) {
        for feeder in self.feeders.drain(..) {
            feeder.abort();
            let _ = feeder.await;
        }
        // Runs that have ended refuse to be cancelled.
        let runs = self.runs.lock().unwrap().clone();
        for run in &runs {
            let _ = self.user.cancel(run).await;
        }
        for run in &runs {
            self.user.wait_for_end(run).await.unwrap();
        }
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.feeders.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Keeps a backlog; returns only when no task of any feeder waits.
async fn feed(
    user: User,
    width: usize,
    waiting: Arc<Vec<AtomicUsize>>,
    own: usize,
    runs: Arc<Mutex<Vec<String>>>,
) {
    let gateways = std::slice::from_ref(&user);
    loop {
        let request_id = ulid::Ulid::generate().to_string();
        let run = trigger(gateways, &all_partitions(&[PART]), &request_id)
            .await
            .unwrap();
        runs.lock().unwrap().push(run.clone());
        loop {
            tokio::time::sleep(poll_interval(width)).await;
            let left = unclaimed(&user, &run).await.unwrap_or(width);
            waiting[own].store(left, Ordering::Relaxed);
            if waiting.iter().all(|left| left.load(Ordering::Relaxed) == 0) {
                return;
            }
            if left <= width / 2 {
                break;
            }
        }
    }
}

/// Short enough that less than half of a run is claimed in between, and long enough that polling is
/// no load.
fn poll_interval(width: usize) -> Duration {
    if width > SMALL_WIDTH {
        TASK_TIME * 10
    } else {
        TASK_TIME * 2
    }
}

/// How many tasks of a run wait for a slot; unknown while the mesh does not respond.
async fn unclaimed(user: &User, run_id: &str) -> Option<usize> {
    match user.run(run_id).await {
        Ok(run) => run.tasks.map(|tasks| tasks.ready as usize),
        Err(error) => {
            let status = error.downcast::<tonic::Status>().unwrap();
            assert!(is_retryable(&status), "{status:?}");
            None
        }
    }
}

/// Worker-seconds of a tenant between two instants.
fn seconds(log: &Log, tenant: &str, from: Instant, to: Instant) -> f64 {
    let log = log.lock().unwrap();
    let own = log.iter().filter(|(whose, ..)| whose == tenant);
    own.map(|(_, began, ended)| {
        (*ended)
            .min(to)
            .saturating_duration_since((*began).max(from))
            .as_secs_f64()
    })
    .sum()
}

fn started(log: &Log, tenant: &str) -> usize {
    log.lock()
        .unwrap()
        .iter()
        .filter(|(whose, ..)| whose == tenant)
        .count()
}

/// When the last attempt of a tenant began.
fn began(log: &Log, tenant: &str) -> Instant {
    let log = log.lock().unwrap();
    log.iter()
        .rev()
        .find(|(whose, ..)| whose == tenant)
        .map(|(_, began, _)| *began)
        .unwrap()
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all[all.len() / 2]
}

/// Triggers a run of one task, the tenant's `number`th; returns its id and the time from the call
/// until the body of the task began.
async fn latency(user: &User, log: &Log, number: usize) -> (String, Duration) {
    let called = Instant::now();
    let run = user.trigger_spec(all_partitions(&[PART])).await.unwrap();
    until_started(log, user.tenant(), number).await;
    (run.run_id, began(log, user.tenant()).duration_since(called))
}

/// The latency on an idle mesh, as the benchmark measures it.
async fn idle_latency(user: &User, log: &Log) -> Duration {
    let mut latencies = Vec::new();
    for number in 1..=if full() { 50 } else { 5 } {
        let (run, latency) = latency(user, log, number).await;
        latencies.push(latency);
        user.wait_for_end(&run).await.unwrap();
        tokio::time::sleep(TASK_TIME / 10).await;
    }
    median(latencies)
}

async fn until_started(log: &Log, tenant: &str, count: usize) {
    // Polls faster than the wait helper, because latencies are measured with it.
    let started = async {
        while started(log, tenant) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(wait::LIMIT, started)
        .await
        .unwrap_or_else(|_| panic!("waited for {count} tasks of {tenant} to start"));
}

/// A mesh in which the large and the small tenant always have waiting tasks.
struct Contest {
    running: Running,
    log: Log,
    backlogs: [Backlog; 2],
    /// Tenants that have deployed and not triggered a run.
    late: Vec<User>,
    /// The latency of a task on the idle mesh.
    idle: Duration,
}

impl Contest {
    /// The small tenant has `weight` times the weight of the large one.
    async fn begin(weight: u32) -> Contest {
        let configure = |options: servo_local::MeshOptions| {
            let all = LATE
                .iter()
                .fold(options.tenant(SMALL).tenant(ALONE), |all, late| {
                    all.tenant(late)
                });
            durable(all).shared_workers().timings(LivenessTimings::FAST)
        };
        let running = Running::start_with(configure).await;
        let measure = measure();
        let of = |tenant| User::at(&running.mesh, 0, tenant).unwrap();
        let (large, small) = (of(TENANT), of(SMALL));
        let late = LATE.map(of).to_vec();
        let mut users = vec![
            (large.clone(), measure.large),
            (small.clone(), SMALL_WIDTH),
            (of(ALONE), 1),
        ];
        users.extend(late.iter().map(|user| (user.clone(), 1)));
        for (user, width) in users {
            let mut manifest = partitioned_fan_out(width);
            manifest.assets = manifest
                .assets
                .into_iter()
                .map(with_short_timeouts)
                .collect();
            user.deploy(manifest).await.unwrap();
        }
        let limits = api::QuotaLimits {
            weight_millis: Some(weight * 1_000),
            ..Default::default()
        };
        small.set_limits(limits).await.unwrap();
        let log = start_worker(&running.mesh);
        let idle = idle_latency(&of(ALONE), &log).await;
        let backlogs = [
            Backlog::keep(&large, measure.large),
            Backlog::keep(&small, SMALL_WIDTH),
        ];
        for tenant in [TENANT, SMALL] {
            until_started(&log, tenant, SLOTS as usize * 2).await;
        }
        Contest {
            running,
            log,
            backlogs,
            late,
            idle,
        }
    }

    fn cpu_usage(&mut self) -> CpuUsage {
        let postgres = self.running.mesh.postgres().unwrap().pid().unwrap();
        CpuUsage::read(&self.running.mesh, postgres).unwrap()
    }

    /// Measures how soon the first task of new tenants begins, which must not depend on the
    /// backlogs.
    async fn check_newcomers(&self, late: &[User]) {
        let mut latencies = Vec::new();
        for user in late {
            let others = || started(&self.log, TENANT) + started(&self.log, SMALL);
            let before = others();
            latencies.push(latency(user, &self.log, 1).await.1);
            let between = others() - before;
            assert!(
                between <= 2 * SLOTS as usize,
                "{between} tasks of other tenants began before the first of the newcomer"
            );
        }
        let bound = mean_release() + 2 * self.idle;
        println!(
            "newcomers began after {latencies:?}, alone after {:?}; allowed are {bound:?}",
            self.idle
        );
        assert!(
            !full() || median(latencies) <= bound,
            "newcomers waited longer than {bound:?}"
        );
    }

    /// Ends all runs and checks the invariants.
    async fn end(mut self) {
        for backlog in &mut self.backlogs {
            backlog.end().await;
        }
        invariants::check(&mut self.running.mesh, &binaries())
            .await
            .unwrap();
        self.running.mesh.stop().await.unwrap();
    }

    /// The share of the small tenant relative to the large one; calls `disturb` in the middle.
    async fn share(&mut self, disturb: impl AsyncFnOnce(&mut LocalMesh)) -> f64 {
        let (from, before) = (Instant::now(), self.cpu_usage());
        tokio::time::sleep(measure().time / 2).await;
        disturb(&mut self.running.mesh).await;
        tokio::time::sleep((from + measure().time).saturating_duration_since(Instant::now())).await;
        let to = Instant::now();
        let busy = self.cpu_usage().percent_of_machine(&before, to - from);
        println!("{busy:.0} % of the machine");
        assert!(
            !full() || busy < CPU_PERCENT_MAX,
            "the machine was {busy:.0} % busy"
        );
        self.backlogs.iter().for_each(Backlog::assert_not_empty);
        let (large, small) = (
            seconds(&self.log, TENANT, from, to),
            seconds(&self.log, SMALL, from, to),
        );
        println!(
            "{large:.1} s of work for {TENANT}, {small:.1} s for {SMALL}: {:.3}",
            small / large
        );
        small / large
    }
}

async fn kill_the_dispatcher(mesh: &mut LocalMesh) {
    mesh.kill_9(Service::Dispatcher).unwrap();
    mesh.launch(Service::Dispatcher).unwrap();
    mesh.wait_until_healthy().await.unwrap();
}

// Two threads, so that callers and the worker do not block each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_f33_shares_ignore_backlogs_and_new_tenants_are_served_next() {
    let mut contest = Contest::begin(1).await;
    let tolerance = measure().tolerance;
    let share = contest.share(async |_| ()).await;
    assert!(
        (share - 1.0).abs() <= tolerance,
        "equal weights gave 1:{share:.3}"
    );

    let half = LATE.len() / 2;
    contest.check_newcomers(&contest.late[..half]).await;
    let share = contest.share(kill_the_dispatcher).await;
    assert!(
        (share - 1.0).abs() <= tolerance,
        "with a dispatcher killed equal weights gave 1:{share:.3}"
    );
    contest.check_newcomers(&contest.late[half..]).await;
    contest.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_shares_follow_weights() {
    let mut contest = Contest::begin(3).await;
    let tolerance = measure().tolerance;
    let share = contest.share(async |_| ()).await;
    assert!(
        (share / 3.0 - 1.0).abs() <= tolerance,
        "weights 1:3 gave 1:{share:.3}"
    );
    let share = contest.share(kill_the_dispatcher).await;
    assert!(
        (share / 3.0 - 1.0).abs() <= tolerance,
        "with a dispatcher killed weights 1:3 gave 1:{share:.3}"
    );
    contest.end().await;
}
