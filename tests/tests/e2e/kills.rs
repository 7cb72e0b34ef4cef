//! `kill -9` of every service and of Postgres at random times under load: every acknowledged run
//! ends correctly, and no attempt is repeated without a recorded reason.

use std::time::{Duration, SystemTime};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use servo_client::api::RunState;
use servo_local::{Instance, LivenessTimings, TENANT};
use servo_model::Service;
use servo_tests::load::Load;
use servo_tests::manifest::{layers, manifest, with_short_timeouts};
use servo_tests::running::durable;
use servo_tests::user::User;
use servo_tests::worker_process::WorkerProcess;
use servo_tests::{full, invariants, journal, seed};

use crate::support::{Running, binaries};

const SLEEP: &str = r#"{"do":"sleep","ms":150}"#;
const CALLERS: usize = 4;

#[derive(Debug, Clone, Copy)]
enum Victim {
    Service(Service),
    Postgres,
}

const KILLS_FULL: usize = 10;

#[tokio::test]
async fn chaos_kill_9_of_each_service_loses_nothing_and_repeats_nothing() {
    survive(&Service::ALL.map(Victim::Service), 1).await;
}

#[tokio::test]
async fn chaos_inv_20_kill_9_of_postgres_loses_nothing_that_was_acknowledged() {
    survive(&[Victim::Postgres], 3).await;
}

/// Kills each victim several times (`kills` times in a sample) under load, then compares the
/// journal of the workers with the histories.
async fn survive(victims: &[Victim], kills: usize) {
    let mut random = StdRng::seed_from_u64(seed());
    let mut running =
        Running::start_with(|options| durable(options).timings(LivenessTimings::FAST)).await;
    let journal = running.file("journal");
    let worker = WorkerProcess::default().journal(&journal);
    let _workers = [0, 1].map(|_| worker.start(&running.mesh, &binaries()).unwrap());
    let user = User::of(&running.mesh).unwrap();
    let assets = layers(3, 3, 2, SLEEP)
        .into_iter()
        .map(with_short_timeouts)
        .collect();
    user.deploy(manifest(assets)).await.unwrap();

    let load = Load::start(std::slice::from_ref(&user), "layers.*", CALLERS);
    let mut postgres_kills = Vec::new();
    for _ in 0..if full() { KILLS_FULL } else { kills } {
        for victim in victims {
            pause(&mut random, 1_000).await;
            postgres_kills.extend(kill_and_restart(&mut running, *victim, &mut random).await);
            // Sometimes the next kill comes before the mesh has recovered from the last one.
            if random.random_bool(0.75) {
                load.wait_for_runs(1).await;
            }
        }
    }
    pause(&mut random, 1_000).await;
    let runs = load.stop().await.unwrap();

    for run in &runs {
        let ended = user.run(run).await.unwrap();
        assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
        let tasks = ended.tasks.unwrap();
        assert_eq!((tasks.total, tasks.succeeded), (9, 9), "{run}");
    }
    let ends = journal::attempt_ends(&user, &runs).await.unwrap();
    let lines = journal::read(&journal).unwrap();
    let comparison = journal::compare(&lines, &ends, &postgres_kills);
    println!(
        "{} runs of {TENANT}, {} attempts, {} lines: {comparison:?}",
        runs.len(),
        ends.len(),
        lines.len()
    );
    assert_eq!(comparison.faults, Vec::<String>::new());
    assert_eq!(
        comparison.counted,
        runs.len() * 9,
        "one attempt of every task counts"
    );
    invariants::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().await.unwrap();
}

/// Kills and restarts the victim; returns the time if it was Postgres.
async fn kill_and_restart(
    running: &mut Running,
    victim: Victim,
    random: &mut StdRng,
) -> Option<SystemTime> {
    let killed = match victim {
        Victim::Service(service) => {
            running.mesh.kill_9(service).unwrap();
            pause(random, 500).await;
            running.mesh.launch(Instance::from(service)).unwrap();
            None
        }
        Victim::Postgres => {
            let postgres = running.mesh.postgres().unwrap();
            postgres.kill_9().unwrap();
            let killed = SystemTime::now();
            pause(random, 500).await;
            running.mesh.postgres().unwrap().restart().unwrap();
            Some(killed)
        }
    };
    running.mesh.wait_until_healthy().await.unwrap();
    killed
}

/// Waits for a random time.
async fn pause(random: &mut StdRng, most_ms: u64) {
    tokio::time::sleep(Duration::from_millis(random.random_range(0..most_ms))).await;
}
