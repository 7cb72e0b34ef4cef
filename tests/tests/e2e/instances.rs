//! Two of each that holds something: one is killed, the other takes over, and limits stay limits.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt, TryStreamExt};
use servo_client::api::{QuotaLimits, RunState};
use servo_local::{Instance, LivenessPace, LocalMesh, TENANT};
use servo_model::{Service, Stream};
use servo_tests::load::{Load, ended};
use servo_tests::manifest::{impatient, layers, manifest};
use servo_tests::sweep::{Ran, peak, ran};
use servo_tests::user::User;
use servo_tests::worker_process::WorkerProcess;
use servo_tests::{aftermath, full, journal};
use sqlx::{Connection, PgConnection};

use crate::support::{Running, binaries};

const TWINS: [Service; 4] = [
    Service::Gateway,
    Service::Scheduler,
    Service::Dispatcher,
    Service::Callback,
];
const NAP: &str = r#"{"do":"sleep","ms":100}"#;
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

/// Waits until `instance` holds all shards of its stream, or its fair part of them.
pub(crate) async fn until_it_holds(mesh: &LocalMesh, instance: Instance, all: bool) {
    let Some(stream) = stream_of(instance.service) else {
        return;
    };
    let shards = i64::from(stream.shards());
    let wanted = if all { shards } else { shards / 2 };
    while shards_at(mesh, stream, &mesh.address(instance)).await != wanted {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn chaos_f19_one_of_two_is_killed_and_runs_go_on_within_all_limits() {
    let twins = |options| {
        TWINS
            .iter()
            .fold(options, |all: servo_local::MeshOptions, one| {
                all.instances(*one, 2)
            })
    };
    let mut running = Running::start_with(|options| twins(options).pace(LivenessPace::QUICK)).await;
    let journal = running.file("journal");
    let worker = WorkerProcess::default().direct().journal(&journal);
    let _workers = [0, 1].map(|n| {
        worker
            .clone()
            .at(n)
            .start(&running.mesh, &binaries())
            .unwrap()
    });
    let doors = [0, 1].map(|n| User::at(&running.mesh, n, TENANT).unwrap());
    let user = &doors[0];
    user.create_pool(POOL, POOL_SLOTS).await.unwrap();
    user.limit(QuotaLimits {
        max_concurrent_tasks: Some(TENANT_TASKS),
        ..Default::default()
    })
    .await
    .unwrap();
    let mut assets = layers(3, 3, 2, NAP);
    assets
        .iter_mut()
        .step_by(2)
        .for_each(|asset| asset.pool = POOL.to_owned());
    user.deploy(manifest(assets.into_iter().map(impatient).collect()))
        .await
        .unwrap();
    for service in TWINS {
        for number in [0, 1] {
            until_it_holds(&running.mesh, Instance { service, number }, false).await;
        }
    }

    let load = Load::start(&doors, "layers.*", CALLERS);
    for round in 0..rounds() {
        for service in TWINS {
            load.goes_on(2).await;
            let victim = Instance {
                service,
                number: round % 2,
            };
            let heir = Instance {
                service,
                number: 1 - round % 2,
            };
            take_over(&mut running, &load, victim, heir).await;
        }
    }
    let runs = load.stop().await.unwrap();

    for run in &runs {
        let run = ended(&doors, run).await.unwrap();
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
        "the tenant's cap is reached and not passed"
    );
    assert_eq!(
        peak(&pooled),
        POOL_SLOTS as usize,
        "the pool is drawn upon and not overdrawn"
    );
    let fates = journal::fates(user, &runs).await.unwrap();
    let tally = journal::compare(&journal::read(&journal).unwrap(), &fates, &[]);
    println!("{tally:?}");
    assert_eq!(tally.faults, Vec::<String>::new());
    aftermath::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().unwrap();
}

/// Kills one. What it held moves, and runs end, before it comes back.
async fn take_over(running: &mut Running, load: &Load, victim: Instance, heir: Instance) {
    running.mesh.kill_9(victim).unwrap();
    let killed = Instant::now();
    if stream_of(victim.service).is_some() {
        until_it_holds(&running.mesh, heir, true).await;
        let moved = killed.elapsed();
        println!("{heir} holds everything {moved:?} after {victim} was killed");
        assert!(
            !full() || moved < MOVED_WITHIN,
            "{moved:?} after {victim} was killed"
        );
    }
    load.goes_on(1).await;
    println!("runs end {:?} after {victim} was killed", killed.elapsed());
    running.mesh.launch(victim).unwrap();
    running.mesh.wait_until_healthy().await.unwrap();
    until_it_holds(&running.mesh, victim, false).await;
}

/// When every attempt of the tenant ran, and when those of the pool did.
async fn attempts(user: &User, runs: &[String]) -> (Vec<Ran>, Vec<Ran>) {
    let of_run = |run: &String| {
        let (user, run) = (user.clone(), run.clone());
        async move {
            let mut all = Vec::new();
            for task in user.tasks(&run).await? {
                let own = ran(&user.task(&run, &task.task_id).await?);
                all.extend(own.into_iter().map(|one| (one, task.pool == POOL)));
            }
            anyhow::Ok(all)
        }
    };
    let all: Vec<Vec<(Ran, bool)>> = stream::iter(runs.iter().map(of_run))
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
