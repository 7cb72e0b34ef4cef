//! Fair shares in real time: tasks that sleep 100 ms on 50 slots of one worker that serves everybody.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use servo_client::worker::{Attempt, Done, Handler, Worker, WorkerConfig};
use servo_client::{Client, Credentials, Tls, api};
use servo_local::{LivenessPace, LocalMesh, TENANT};
use servo_model::Service;
use servo_tests::effort::Effort;
use servo_tests::load::{acknowledged, may_repeat};
use servo_tests::manifest::{everything, impatient, partitioned_fan_out};
use servo_tests::user::User;
use servo_tests::{aftermath, full};

use crate::support::{Running, binaries};

/// The tenant with the small backlog.
const SMALL: &str = "small";
/// Tenants that come when all slots are taken, each for the first time: some before the kill, some behind it.
const LATE: [&str; 20] = [
    "late0", "late1", "late2", "late3", "late4", "late5", "late6", "late7", "late8", "late9",
    "late10", "late11", "late12", "late13", "late14", "late15", "late16", "late17", "late18",
    "late19",
];
/// A tenant that has the mesh for itself, before anybody else comes.
const ALONE: &str = "alone";
/// Workers of this tenant serve all others.
const EVERYBODY: &str = "-";
/// The tasks that wait for nothing but a slot.
const PART: &str = "fan/part";
const SLOTS: u32 = 50;
/// On average. Naps of exactly the same length that begin together end together: then no slot becomes free for a whole
/// nap, whatever the shares are.
const NAP: Duration = Duration::from_millis(100);
const NAP_SPREAD: f64 = 0.1;
/// Callers per tenant, and tasks of a run of the small one.
const FEEDERS: usize = 4;
const SMALL_WIDTH: usize = 100;
/// Of all cores: with more, the machine decides who waits and not the shares.
const CPU_PERCENT_MAX: f64 = 60.0;

/// How long is measured, how much waits, and how exact the shares must be.
struct Measure {
    time: Duration,
    large: usize,
    tolerance: f64,
}

fn measure() -> Measure {
    match full() {
        true => Measure {
            time: Duration::from_secs(60),
            large: 10_000,
            tolerance: 0.05,
        },
        // 100 ms count for more in a short time.
        false => Measure {
            time: Duration::from_secs(6),
            large: 1_000,
            tolerance: 0.2,
        },
    }
}

/// One slot becomes free this often when all of them are taken.
fn mean_release() -> Duration {
    NAP / SLOTS
}

/// When each attempt ran, and for whom.
type Log = Arc<Mutex<Vec<(String, Instant, Instant)>>>;

struct Napper {
    began: Log,
}

impl Handler for Napper {
    async fn run(&self, attempt: Attempt) -> Done {
        let began = Instant::now();
        let place = {
            let mut log = self.began.lock().unwrap();
            log.push((attempt.envelope().tenant.clone(), began, began + NAP));
            log.len() - 1
        };
        tokio::time::sleep(NAP.mul_f64(rand::random_range(1.0 - NAP_SPREAD..1.0 + NAP_SPREAD)))
            .await;
        self.began.lock().unwrap()[place].2 = Instant::now();
        Done::succeeded()
    }
}

/// Starts the one worker, straight at the dispatcher and the callback.
fn work(mesh: &LocalMesh) -> Log {
    let (certificate, key) = mesh.worker_certificate(EVERYBODY).unwrap();
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
        name: "napper".to_owned(),
        slots: SLOTS,
        handlers: vec!["noop".to_owned()],
        ..Default::default()
    };
    let log = Log::default();
    let config = WorkerConfig::new(EVERYBODY, info);
    let worker = Worker::new(dispatcher, callback, config, Napper { began: log.clone() });
    tokio::spawn(async move { worker.run().await.unwrap() });
    log
}

/// Several callers of a tenant who ask for the next run when half of the last one is claimed.
struct Backlog {
    user: User,
    feeders: Vec<tokio::task::JoinHandle<()>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Backlog {
    fn keep(user: &User, width: usize) -> Backlog {
        let waiting: Arc<Vec<AtomicUsize>> =
            Arc::new((0..FEEDERS).map(|_| AtomicUsize::new(width)).collect());
        let asked = Arc::default();
        let feeder = |own: usize| {
            tokio::spawn(feed(
                user.clone(),
                width,
                waiting.clone(),
                own,
                Arc::clone(&asked),
            ))
        };
        Backlog {
            user: user.clone(),
            feeders: (0..FEEDERS).map(feeder).collect(),
            asked,
        }
    }

    /// A share is only worth its name while there is more to have.
    fn assert_it_lasts(&self) {
        assert!(
            self.feeders.iter().all(|feeder| !feeder.is_finished()),
            "a backlog ran dry"
        );
    }

    /// Nobody asks for more, and what was asked for comes to its end.
    async fn end(&mut self) {
        for feeder in self.feeders.drain(..) {
            feeder.abort();
            let _ = feeder.await;
        }
        // Those that had ended by themselves refuse it.
        let runs = self.asked.lock().unwrap().clone();
        for run in &runs {
            let _ = self.user.cancel(run).await;
        }
        for run in &runs {
            self.user.ended(run).await.unwrap();
        }
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.feeders.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Ends only when nothing of any feeder waits any more.
async fn feed(
    user: User,
    width: usize,
    waiting: Arc<Vec<AtomicUsize>>,
    own: usize,
    asked: Arc<Mutex<Vec<String>>>,
) {
    let doors = std::slice::from_ref(&user);
    loop {
        let request_id = ulid::Ulid::generate().to_string();
        let run = acknowledged(doors, &everything(&[PART]), &request_id)
            .await
            .unwrap();
        asked.lock().unwrap().push(run.clone());
        loop {
            tokio::time::sleep(look_every(width)).await;
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

/// Often enough that half of a run is not gone before; more often would be a load of its own.
fn look_every(width: usize) -> Duration {
    if width > SMALL_WIDTH {
        NAP * 10
    } else {
        NAP * 2
    }
}

/// How many tasks of a run wait for a slot; nobody knows while nobody answers.
async fn unclaimed(user: &User, run_id: &str) -> Option<usize> {
    match user.run(run_id).await {
        Ok(run) => run.tasks.map(|tasks| tasks.ready as usize),
        Err(error) => {
            let status = error.downcast::<tonic::Status>().unwrap();
            assert!(may_repeat(&status), "{status:?}");
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

/// Asks for one task, the tenant's `number`th, and answers its run, and how long after the call its body began.
async fn latency(user: &User, log: &Log, number: usize) -> (String, Duration) {
    let called = Instant::now();
    let run = user.trigger_spec(everything(&[PART])).await.unwrap();
    until_started(log, user.tenant(), number).await;
    (run.run_id, began(log, user.tenant()).duration_since(called))
}

/// With nothing else to do, as the bench measures it.
async fn idle_latency(user: &User, log: &Log) -> Duration {
    let mut latencies = Vec::new();
    for number in 1..=if full() { 50 } else { 5 } {
        let (run, latency) = latency(user, log, number).await;
        latencies.push(latency);
        user.ended(&run).await.unwrap();
        tokio::time::sleep(NAP / 10).await;
    }
    median(latencies)
}

async fn until_started(log: &Log, tenant: &str, count: usize) {
    while started(log, tenant) < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A mesh in which the large and the small tenant have work for as long as it lasts.
struct Contest {
    running: Running,
    log: Log,
    backlogs: [Backlog; 2],
    /// They have deployed, and asked for nothing yet.
    late: Vec<User>,
    /// How soon a task begins when there is nothing else to do.
    idle: Duration,
}

impl Contest {
    /// The small tenant has `weight` times the weight of the large one.
    async fn begin(weight: u32) -> Contest {
        let wish = |options: servo_local::MeshOptions| {
            let all = LATE
                .iter()
                .fold(options.tenant(SMALL).tenant(ALONE), |all, late| {
                    all.tenant(late)
                });
            all.shared_workers().pace(LivenessPace::QUICK)
        };
        let running = Running::start_with(wish).await;
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
            manifest.assets = manifest.assets.into_iter().map(impatient).collect();
            user.deploy(manifest).await.unwrap();
        }
        let limits = api::QuotaLimits {
            weight_millis: Some(weight * 1_000),
            ..Default::default()
        };
        small.limit(limits).await.unwrap();
        let log = work(&running.mesh);
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

    fn effort(&mut self) -> Effort {
        let postgres = self.running.mesh.postgres().unwrap().pid().unwrap();
        Effort::read(&self.running.mesh, postgres).unwrap()
    }

    /// Tenants that were never here ask for their first task. How soon it begins must not depend on who waits.
    async fn newcomers(&self, late: &[User]) {
        let mut latencies = Vec::new();
        for user in late {
            let others = || started(&self.log, TENANT) + started(&self.log, SMALL);
            let before = others();
            latencies.push(latency(user, &self.log, 1).await.1);
            let between = others() - before;
            assert!(
                between <= 2 * SLOTS as usize,
                "{between} tasks of others began before the newcomer's first"
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

    /// Everything that was asked for ends, and stands as the ledger says.
    async fn end(mut self) {
        for backlog in &mut self.backlogs {
            backlog.end().await;
        }
        aftermath::check(&mut self.running.mesh, &binaries())
            .await
            .unwrap();
        self.running.mesh.stop().unwrap();
    }

    /// The shares over the measured time; what happens meanwhile is up to `meanwhile`.
    async fn share(&mut self, meanwhile: impl AsyncFnOnce(&mut LocalMesh)) -> f64 {
        let (from, before) = (Instant::now(), self.effort());
        tokio::time::sleep(measure().time / 2).await;
        meanwhile(&mut self.running.mesh).await;
        tokio::time::sleep((from + measure().time).saturating_duration_since(Instant::now())).await;
        let to = Instant::now();
        let busy = self.effort().percent_of_the_machine(&before, to - from);
        println!("{busy:.0} % of the machine");
        assert!(
            !full() || busy < CPU_PERCENT_MAX,
            "the machine was {busy:.0} % busy"
        );
        self.backlogs.iter().for_each(Backlog::assert_it_lasts);
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

// Callers and the worker are in each other's way no more than processes of their own would be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_f33_backlogs_do_not_count_and_who_comes_late_is_served_next() {
    let mut contest = Contest::begin(1).await;
    let tolerance = measure().tolerance;
    let share = contest.share(async |_| ()).await;
    assert!(
        (share - 1.0).abs() <= tolerance,
        "equal weights gave 1:{share:.3}"
    );

    let half = LATE.len() / 2;
    contest.newcomers(&contest.late[..half]).await;
    let share = contest.share(kill_the_dispatcher).await;
    assert!(
        (share - 1.0).abs() <= tolerance,
        "with a dispatcher killed equal weights gave 1:{share:.3}"
    );
    contest.newcomers(&contest.late[half..]).await;
    contest.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_weights_are_shares() {
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
