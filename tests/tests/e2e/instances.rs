//! Two instances of each sharded service: when one is killed the other takes over, and limits hold.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt, TryStreamExt};
use servo_client::api::{QuotaLimits, RunState};
use servo_local::wait::until_true;
use servo_local::{Instance, LivenessTimings, LocalMesh, TENANT};
use servo_model::{Service, Stream};
use servo_tests::concurrency::{Interval, intervals, peak};
use servo_tests::load::{Load, wait_for_end};
use servo_tests::manifest::{layers, manifest, with_short_timeouts};
use servo_tests::user::User;
use servo_tests::worker_process::WorkerProcess;
use servo_tests::{full, invariants, journal};
use sqlx::{Connection, PgConnection};

use crate::support::{Running, binaries};

const TWINS: [Service; 4] = [
    Service::Gateway,
    Service::Scheduler,
    Service::Dispatcher,
    Service::Callback,
];
const SLEEP: &str = r#"{"do":"sleep","ms":100}"#;
const POOL: &str = "db";
const POOL_SLOTS: u32 = 2;
const TENANT_TASKS: u32 = 5;
const CALLERS: usize = 6;
const MOVED_WITHIN: Duration = Duration::from_secs(10);

fn rounds() -> usize {
    if full() { 10 } else { 1 }
}

/// Counts the shards of a stream that live leases give to this address.
async fn shards_at(mesh: &LocalMesh, stream: Stream, address: &str) -> i64 {
    let sql = "SELECT count(*) FROM ledger.shards \
               WHERE stream = $1 AND address = $2 AND lease_until > clock_timestamp()";
    let mut connection = PgConnection::connect(mesh.admin_url()).await.unwrap();
    let count = sqlx::query_scalar(sql)
        .bind(stream.code())
        .bind(address)
        .fetch_one(&mut connection)
        .await;
    count.unwrap()
}

fn stream_of(service: Service) -> Option<Stream> {
    match service {
        Service::Scheduler => Some(Stream::Execution),
        Service::Dispatcher => Some(Stream::Dispatch),
        _ => None,
    }
}

/// Waits until `instance` holds all shards of its stream, or half of them.
pub(crate) async fn wait_for_shards(mesh: &LocalMesh, instance: Instance, all: bool) {
    let Some(stream) = stream_of(instance.service) else {
        return;
    };
    let shards = i64::from(stream.shard_count());
    let wanted = if all { shards } else { shards / 2 };
    let what = format!("{instance} to hold {wanted} shards");
    until_true(&what, async || {
        shards_at(mesh, stream, &mesh.address(instance)).await == wanted
    })
    .await;
}

#[tokio::test]
async fn chaos_f19_runs_continue_within_all_limits_when_one_of_two_instances_is_killed() {
    let twins = |options| {
        TWINS
            .iter()
            .fold(options, |all: servo_local::MeshOptions, one| {
                all.instances(*one, 2)
            })
    };
    let mut running =
        Running::start_with(|options| twins(options).timings(LivenessTimings::FAST)).await;
    let journal = running.file("journal");
    let worker = WorkerProcess::default().direct().journal(&journal);
    let _workers = [0, 1].map(|n| {
        worker
            .clone()
            .at(n)
            .start(&running.mesh, &binaries())
            .unwrap()
    });
    let gateways = [0, 1].map(|n| User::at(&running.mesh, n, TENANT).unwrap());
    let user = &gateways[0];
    user.create_pool(POOL, POOL_SLOTS).await.unwrap();
    user.set_limits(QuotaLimits {
        max_concurrent_tasks: Some(TENANT_TASKS),
        ..Default::default()
    })
    .await
    .unwrap();
    let mut assets = layers(3, 3, 2, SLEEP);
    assets
        .iter_mut()
        .step_by(2)
        .for_each(|asset| asset.pool = POOL.to_owned());
    user.deploy(manifest(
        assets.into_iter().map(with_short_timeouts).collect(),
    ))
    .await
    .unwrap();
    for service in TWINS {
        for number in [0, 1] {
            wait_for_shards(&running.mesh, Instance { service, number }, false).await;
        }
    }

    let load = Load::start(&gateways, "layers.*", CALLERS);
    for round in 0..rounds() {
        for service in TWINS {
            load.wait_for_runs(2).await;
            let victim = Instance {
                service,
                number: round % 2,
            };
            let successor = Instance {
                service,
                number: 1 - round % 2,
            };
            take_over(&mut running, &load, victim, successor).await;
        }
    }
    let runs = load.stop().await.unwrap();

    for run in &runs {
        let run = wait_for_end(&gateways, run).await.unwrap();
        assert_eq!(run.state(), RunState::Succeeded, "{run:?}");
    }
    let (all, pooled) = attempts(user, &runs).await;
    println!(
        "{} runs: at most {} tasks, {} in the pool",
        runs.len(),
        peak(&all),
        peak(&pooled)
    );
    assert_eq!(
        peak(&all),
        TENANT_TASKS as usize,
        "the limit of the tenant is reached and not exceeded"
    );
    assert_eq!(
        peak(&pooled),
        POOL_SLOTS as usize,
        "the pool is used up and not exceeded"
    );
    let ends = journal::attempt_ends(user, &runs).await.unwrap();
    let comparison = journal::compare(&journal::read(&journal).unwrap(), &ends, &[]);
    println!("{comparison:?}");
    assert_eq!(comparison.faults, Vec::<String>::new());
    invariants::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().await.unwrap();
}

/// Kills `victim` and restarts it after `successor` holds its shards and runs end again.
async fn take_over(running: &mut Running, load: &Load, victim: Instance, successor: Instance) {
    running.mesh.kill_9(victim).unwrap();
    let killed = Instant::now();
    if stream_of(victim.service).is_some() {
        wait_for_shards(&running.mesh, successor, true).await;
        let moved = killed.elapsed();
        println!("{successor} holds all shards {moved:?} after {victim} was killed");
        assert!(
            !full() || moved < MOVED_WITHIN,
            "{moved:?} after {victim} was killed"
        );
    }
    load.wait_for_runs(1).await;
    println!("runs end {:?} after {victim} was killed", killed.elapsed());
    running.mesh.launch(victim).unwrap();
    running.mesh.wait_until_healthy().await.unwrap();
    wait_for_shards(&running.mesh, victim, false).await;
}

/// The intervals of all attempts of the tenant, and of those in the pool.
async fn attempts(user: &User, runs: &[String]) -> (Vec<Interval>, Vec<Interval>) {
    let of_run = |run: &String| {
        let (user, run) = (user.clone(), run.clone());
        async move {
            let mut all = Vec::new();
            for task in user.tasks(&run).await? {
                let own = intervals(&user.task(&run, &task.task_id).await?);
                all.extend(own.into_iter().map(|one| (one, task.pool == POOL)));
            }
            anyhow::Ok(all)
        }
    };
    let all: Vec<Vec<(Interval, bool)>> = stream::iter(runs.iter().map(of_run))
        .buffer_unordered(8)
        .try_collect()
        .await
        .unwrap();
    let pooled = all
        .iter()
        .flatten()
        .filter(|(_, pooled)| *pooled)
        .map(|(one, _)| *one);
    (
        all.iter().flatten().map(|(one, _)| *one).collect(),
        pooled.collect(),
    )
}
