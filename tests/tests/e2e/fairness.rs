//! Fair shares in real time: tasks that sleep 100 ms on 50 slots of one worker that serves everybody.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use servo_client::worker::{Attempt, Done, Handler, Worker, WorkerConfig};
use servo_client::{Client, Credentials, Tls, api};
use servo_local::{LivenessPace, LocalMesh, TENANT};
use servo_model::Service;
use servo_tests::full;
use servo_tests::load::{acknowledged, may_repeat};
use servo_tests::manifest::{everything, impatient, partitioned_fan_out};
use servo_tests::user::User;

use crate::support::Running;

/// The tenant with the small backlog.
const SMALL: &str = "small";
/// A tenant that comes when all slots are taken.
const LATE: &str = "late";
/// Workers of this tenant serve all others.
const EVERYBODY: &str = "-";
/// The tasks that wait for nothing but a slot.
const PART: &str = "fan/part";
const SLOTS: u32 = 50;
const NAP: Duration = Duration::from_millis(100);
/// Callers per tenant, and tasks of a run of the small one.
const FEEDERS: usize = 4;
const SMALL_WIDTH: usize = 100;

/// How long is measured, how much waits, and how exact the shares must be.
struct Measure {
    time: Duration,
    large: usize,
    tolerance: f64,
}

fn measure() -> Measure {
    match full() {
        true => Measure { time: Duration::from_secs(60), large: 10_000, tolerance: 0.05 },
        // 100 ms count for more in a short time.
        false => Measure { time: Duration::from_secs(6), large: 1_000, tolerance: 0.2 },
    }
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
        tokio::time::sleep(NAP).await;
        self.began.lock().unwrap()[place].2 = Instant::now();
        Done::succeeded()
    }
}

/// Starts the one worker, straight at the dispatcher and the callback.
fn work(mesh: &LocalMesh) -> Log {
    let (certificate, key) = mesh.worker_certificate(EVERYBODY).unwrap();
    let read = |path| std::fs::read_to_string(path).unwrap();
    let credentials = Credentials::Certificate { certificate: read(certificate), key: read(key) };
    let trust = Tls::new(read(mesh.ca_path())).server_name("localhost");
    let dispatcher = Client::connect(&mesh.address(Service::Dispatcher), &trust, credentials).unwrap();
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
struct Backlog(Vec<tokio::task::JoinHandle<()>>);

impl Backlog {
    fn keep(user: &User, width: usize) -> Backlog {
        let waiting: Arc<Vec<AtomicUsize>> =
            Arc::new((0..FEEDERS).map(|_| AtomicUsize::new(width)).collect());
        let feeder = |own: usize| tokio::spawn(feed(user.clone(), width, waiting.clone(), own));
        Backlog((0..FEEDERS).map(feeder).collect())
    }

    /// A share is only worth its name while there is more to have.
    fn assert_it_lasts(&self) {
        assert!(self.0.iter().all(|feeder| !feeder.is_finished()), "a backlog ran dry");
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Ends only when nothing of any feeder waits any more.
async fn feed(user: User, width: usize, waiting: Arc<Vec<AtomicUsize>>, own: usize) {
    let doors = std::slice::from_ref(&user);
    loop {
        let request_id = ulid::Ulid::generate().to_string();
        let run = acknowledged(doors, &everything(&[PART]), &request_id).await.unwrap();
        loop {
            tokio::time::sleep(NAP).await;
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
    own.map(|(_, began, ended)| (*ended).min(to).saturating_duration_since((*began).max(from)).as_secs_f64())
        .sum()
}

fn started(log: &Log, tenant: &str) -> usize {
    log.lock().unwrap().iter().filter(|(whose, ..)| whose == tenant).count()
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
}

impl Contest {
    /// The small tenant has `weight` times the weight of the large one.
    async fn begin(weight: u32) -> Contest {
        let wish = |options: servo_local::MeshOptions| {
            options.tenant(SMALL).tenant(LATE).shared_workers().pace(LivenessPace::QUICK)
        };
        let running = Running::start_with(wish).await;
        let measure = measure();
        let of = |tenant| User::at(&running.mesh, 0, tenant).unwrap();
        let (large, small) = (of(TENANT), of(SMALL));
        for (user, width) in [(&large, measure.large), (&small, SMALL_WIDTH), (&of(LATE), 1)] {
            let mut manifest = partitioned_fan_out(width);
            manifest.assets = manifest.assets.into_iter().map(impatient).collect();
            user.deploy(manifest).await.unwrap();
        }
        let limits = api::QuotaLimits { weight_millis: Some(weight * 1_000), ..Default::default() };
        small.limit(limits).await.unwrap();
        let log = work(&running.mesh);
        let backlogs = [Backlog::keep(&large, measure.large), Backlog::keep(&small, SMALL_WIDTH)];
        for tenant in [TENANT, SMALL] {
            until_started(&log, tenant, SLOTS as usize * 2).await;
        }
        Contest { running, log, backlogs }
    }

    /// The shares over the measured time; what happens meanwhile is up to `meanwhile`.
    async fn share(&mut self, meanwhile: impl AsyncFnOnce(&mut LocalMesh)) -> f64 {
        let from = Instant::now();
        tokio::time::sleep(measure().time / 2).await;
        meanwhile(&mut self.running.mesh).await;
        tokio::time::sleep((from + measure().time).saturating_duration_since(Instant::now())).await;
        let to = Instant::now();
        self.backlogs.iter().for_each(Backlog::assert_it_lasts);
        let (large, small) = (seconds(&self.log, TENANT, from, to), seconds(&self.log, SMALL, from, to));
        println!("{large:.1} s of work for {TENANT}, {small:.1} s for {SMALL}: {:.3}", small / large);
        small / large
    }
}

async fn kill_the_dispatcher(mesh: &mut LocalMesh) {
    mesh.kill_9(Service::Dispatcher).unwrap();
    mesh.launch(Service::Dispatcher).unwrap();
    mesh.wait_until_healthy().await.unwrap();
}

#[tokio::test]
async fn chaos_f33_backlogs_do_not_count_and_who_comes_late_is_served_next() {
    let mut contest = Contest::begin(1).await;
    let tolerance = measure().tolerance;
    let share = contest.share(async |_| ()).await;
    assert!((share - 1.0).abs() <= tolerance, "equal weights gave 1:{share:.3}");

    let late = User::at(&contest.running.mesh, 0, LATE).unwrap();
    let others = || started(&contest.log, TENANT) + started(&contest.log, SMALL);
    let called = Instant::now();
    late.trigger_spec(everything(&[PART])).await.unwrap();
    let before = others();
    until_started(&contest.log, LATE, 1).await;
    let between = others() - before;
    println!("{LATE} began {:?} after its call, {between} others in between", called.elapsed());
    assert!(between <= 2 * SLOTS as usize, "{between} tasks of others began before the newcomer's first");

    let share = contest.share(kill_the_dispatcher).await;
    assert!((share - 1.0).abs() <= tolerance, "with a dispatcher killed equal weights gave 1:{share:.3}");
    contest.running.mesh.stop().unwrap();
}

#[tokio::test]
async fn chaos_weights_are_shares() {
    let mut contest = Contest::begin(3).await;
    let tolerance = measure().tolerance;
    let share = contest.share(async |_| ()).await;
    assert!((share / 3.0 - 1.0).abs() <= tolerance, "weights 1:3 gave 1:{share:.3}");
    let share = contest.share(kill_the_dispatcher).await;
    assert!((share / 3.0 - 1.0).abs() <= tolerance, "with a dispatcher killed weights 1:3 gave 1:{share:.3}");
    contest.running.mesh.stop().unwrap();
}
