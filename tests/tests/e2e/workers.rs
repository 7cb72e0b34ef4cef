//! Worker processes that die, are stopped, or lose their connections.

use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal;
use servo_client::api::{self, Outcome, RunState, TaskState, TransitionReason};
use servo_local::wait::until_true;
use servo_local::{Child, LivenessTimings};
use servo_model::Service;
use servo_tests::flaky_proxy::FlakyProxy;
use servo_tests::load::Load;
use servo_tests::manifest::{asset, layers, manifest, with_short_timeouts};
use servo_tests::user::User;
use servo_tests::worker_process::WorkerProcess;
use servo_tests::{full, invariants, journal};
use sqlx::{Connection, PgConnection};

use crate::support::{Running, binaries, metrics};

const POOL: &str = "db";
const SLOTS: u32 = 4;
/// The longer timeout of [`with_short_timeouts`], and as much again until the loss is recorded.
const LOST_WITHIN: Duration = Duration::from_secs(5 + 5);

async fn start_mesh() -> Running {
    Running::start_with(|options| options.timings(LivenessTimings::FAST)).await
}

async fn deploy_pooled(user: &User, tasks: usize) {
    user.create_pool(POOL, SLOTS).await.unwrap();
    let sleep = r#"{"do":"sleep","ms":300}"#;
    let one = |n| api::AssetDefinition {
        pool: POOL.to_owned(),
        ..with_short_timeouts(asset(&format!("pool/t{n}"), &[], sleep))
    };
    user.deploy(manifest((0..tasks).map(one).collect()))
        .await
        .unwrap();
}

/// The time from `killed` until each lost attempt was recorded as lost.
async fn lost_after(user: &User, run: &str, killed: SystemTime) -> Vec<Duration> {
    let mut after = Vec::new();
    for task in user.tasks(run).await.unwrap() {
        for change in user.task(run, &task.task_id).await.unwrap().history {
            if matches!(
                change.reason(),
                TransitionReason::HeartbeatTimeout | TransitionReason::DispatchAckTimeout
            ) {
                let at = SystemTime::try_from(change.time.unwrap()).unwrap();
                after.extend(at.duration_since(killed));
            }
        }
    }
    after
}

#[tokio::test]
async fn chaos_f03_attempts_of_killed_workers_are_lost_and_their_slots_freed() {
    let mut running = start_mesh().await;
    let user = User::of(&running.mesh).unwrap();
    deploy_pooled(&user, 12).await;
    let journal = running.file("journal");
    let worker = WorkerProcess::default().slots(SLOTS).journal(&journal);
    let mut process = worker.start(&running.mesh, &binaries()).unwrap();
    let mut runs = Vec::new();
    for _ in 0..if full() { 10 } else { 1 } {
        let run = user.trigger(&["pool.*"]).await.unwrap().run_id;
        // The worker dies while it has all slots of the pool.
        user.wait_for_tasks(&run, "all slots to be taken", |tasks| tasks.active == SLOTS)
            .await
            .unwrap();
        process.kill_group().unwrap();
        let killed = SystemTime::now();
        process = worker.start(&running.mesh, &binaries()).unwrap();
        // The pool has no other slots, so no further task could run if they leaked.
        let ended = user.wait_for_end(&run).await.unwrap();
        assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
        let lost = lost_after(&user, &run, killed).await;
        println!("lost after {lost:?}");
        assert!(!lost.is_empty(), "no attempt was lost");
        assert!(
            !full() || lost.iter().all(|after| *after <= LOST_WITHIN),
            "{lost:?}"
        );
        runs.push(run);
    }
    let ends = journal::attempt_ends(&user, &runs).await.unwrap();
    let comparison = journal::compare(&journal::read(&journal).unwrap(), &ends, &[]);
    assert_eq!(
        (comparison.faults, comparison.counted),
        (vec![], runs.len() * 12)
    );
    drop(process);
    invariants::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().await.unwrap();
}

/// Waits until the start of the only task of the run was reported.
async fn wait_for_start(user: &User, run: &str) {
    until_true("the start to be reported", async || {
        let tasks = user.tasks(run).await.unwrap();
        tasks[0].state() == TaskState::Running
    })
    .await;
}

#[tokio::test]
async fn chaos_f08_the_outcome_of_a_worker_after_a_long_pause_is_refused() {
    let mut running = start_mesh().await;
    let user = User::of(&running.mesh).unwrap();
    let slow = with_short_timeouts(asset("late/a", &[], r#"{"do":"commit","ms":1500}"#));
    user.deploy(manifest(vec![slow])).await.unwrap();
    let journal = running.file("journal");
    let worker = WorkerProcess::default().journal(&journal);
    let paused = worker.start(&running.mesh, &binaries()).unwrap();
    let run = user.trigger(&["late.a"]).await.unwrap().run_id;
    wait_for_start(&user, &run).await;
    paused.signal(Signal::SIGSTOP).unwrap();
    let _successor: Child = worker.start(&running.mesh, &binaries()).unwrap();
    let ended = user.wait_for_end(&run).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");

    paused.signal(Signal::SIGCONT).unwrap();
    let refused = r#"servo_callback_reports_total{kind="finished",answer="refused"} 1"#;
    until_true("the late outcome to be refused", async || {
        metrics(&running.mesh, Service::Callback)
            .await
            .contains(refused)
    })
    .await;
    let task = user.tasks(&run).await.unwrap().remove(0);
    let details = user.task(&run, &task.task_id).await.unwrap();
    let outcomes: Vec<Outcome> = details
        .attempts
        .iter()
        .map(|attempt| attempt.outcome())
        .collect();
    assert_eq!(
        outcomes,
        [Outcome::Unspecified, Outcome::Succeeded],
        "{details:?}"
    );
    let runs = [run];
    let ends = journal::attempt_ends(&user, &runs).await.unwrap();
    let comparison = journal::compare(&journal::read(&journal).unwrap(), &ends, &[]);
    let lost = TransitionReason::HeartbeatTimeout.as_str_name();
    assert_eq!((comparison.faults, comparison.counted), (vec![], 1));
    assert_eq!(
        comparison.explained.into_iter().collect::<Vec<_>>(),
        [(lost, 1)]
    );
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    let versions: Vec<(String,)> =
        sqlx::query_as("SELECT asset_key FROM scheduler.materializations")
            .fetch_all(&mut admin)
            .await
            .unwrap();
    assert_eq!(
        versions,
        [("late/a".to_owned(),)],
        "one version, although two attempts wrote one"
    );
    // I4 checks that the version is that of the attempt that counts.
    invariants::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().await.unwrap();
}

#[tokio::test]
async fn chaos_f13_no_outcome_is_lost_when_connections_are_cut_and_services_killed() {
    let mut running = start_mesh().await;
    let user = User::of(&running.mesh).unwrap();
    // With the default timeouts only an outcome can end an attempt.
    user.deploy(manifest(layers(2, 4, 2, r#"{"do":"sleep","ms":100}"#)))
        .await
        .unwrap();
    let journal = running.file("journal");
    let worker = WorkerProcess::default().journal(&journal);
    let proxy = FlakyProxy::start(
        &running.mesh.address(Service::Callback),
        Duration::from_millis(500),
    )
    .await
    .unwrap();
    let _workers = [
        worker.clone(),
        worker.direct().reporting_to(&proxy.address()),
    ]
    .map(|worker| worker.start(&running.mesh, &binaries()).unwrap());
    let load = Load::start(std::slice::from_ref(&user), "layers.*", 4);
    for _ in 0..if full() { 12 } else { 1 } {
        for service in [Service::Callback, Service::Gateway] {
            load.wait_for_runs(2).await;
            running.mesh.kill_9(service).unwrap();
            running.mesh.launch(service).unwrap();
            running.mesh.wait_until_healthy().await.unwrap();
        }
    }
    load.wait_for_runs(4).await;
    let runs = load.stop().await.unwrap();
    let ends = journal::attempt_ends(&user, &runs).await.unwrap();
    let comparison = journal::compare(&journal::read(&journal).unwrap(), &ends, &[]);
    println!("{} runs: {comparison:?}", runs.len());
    assert_eq!(
        (comparison.faults, comparison.counted),
        (vec![], runs.len() * 8)
    );
    assert!(
        comparison.explained.is_empty(),
        "outcomes were lost: {:?}",
        comparison.explained
    );
    invariants::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().await.unwrap();
}
