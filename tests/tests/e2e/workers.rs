//! Workers that die, stand still and cannot be heard, as processes of their own.

use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal;
use servo_client::api::{self, Outcome, RunState, TransitionReason};
use servo_local::{Child, LivenessPace};
use servo_model::Service;
use servo_tests::cutter::Cutter;
use servo_tests::load::Load;
use servo_tests::manifest::{asset, impatient, layers, manifest};
use servo_tests::user::User;
use servo_tests::worker_process::WorkerProcess;
use servo_tests::{aftermath, full, journal};
use sqlx::{Connection, PgConnection};

use crate::support::{Running, binaries, metrics};

const POOL: &str = "db";
const SLOTS: u32 = 4;
/// What [`impatient`] tasks bear: the longer of silence and of not being picked up, both with what comes on top.
const MISSED_WITHIN: Duration = Duration::from_secs(5 + 5);

async fn quick() -> Running {
    Running::start_with(|options| options.pace(LivenessPace::QUICK)).await
}

async fn pooled(user: &User, tasks: usize) {
    user.create_pool(POOL, SLOTS).await.unwrap();
    let nap = r#"{"do":"sleep","ms":300}"#;
    let one = |n| api::AssetDefinition {
        pool: POOL.to_owned(),
        ..impatient(asset(&format!("pool/t{n}"), &[], nap))
    };
    user.deploy(manifest((0..tasks).map(one).collect()))
        .await
        .unwrap();
}

/// How long it took until each attempt that somebody had at `killed` was missed.
async fn missed_after(user: &User, run: &str, killed: SystemTime) -> Vec<Duration> {
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
async fn chaos_f03_killed_workers_are_missed_and_their_slots_come_back() {
    let mut running = quick().await;
    let user = User::of(&running.mesh).unwrap();
    pooled(&user, 12).await;
    let journal = running.file("journal");
    let worker = WorkerProcess::default().slots(SLOTS).journal(&journal);
    let mut at_work = worker.start(&running.mesh, &binaries()).unwrap();
    let mut runs = Vec::new();
    for _ in 0..if full() { 10 } else { 1 } {
        let run = user.trigger(&["pool.*"]).await.unwrap().run_id;
        // All slots of the pool are taken, and who has them dies.
        user.until(&run, |tasks| tasks.active == SLOTS)
            .await
            .unwrap();
        at_work.kill_group().unwrap();
        let killed = SystemTime::now();
        at_work = worker.start(&running.mesh, &binaries()).unwrap();
        // The slots of the dead are the only ones there are: no task could follow if they leaked.
        let ended = user.ended(&run).await.unwrap();
        assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
        let missed = missed_after(&user, &run, killed).await;
        println!("missed after {missed:?}");
        assert!(!missed.is_empty(), "nobody was missed");
        assert!(
            !full() || missed.iter().all(|after| *after <= MISSED_WITHIN),
            "{missed:?}"
        );
        runs.push(run);
    }
    let fates = journal::fates(&user, &runs).await.unwrap();
    let tally = journal::compare(&journal::read(&journal).unwrap(), &fates, &[]);
    assert_eq!((tally.faults, tally.counted), (vec![], runs.len() * 12));
    drop(at_work);
    aftermath::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().unwrap();
}

/// Waits until so many attempts have begun.
async fn until_begun(journal: &std::path::Path, count: usize) {
    while journal::read(journal).map_or(0, |lines| lines.len()) < count {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn chaos_f08_what_a_worker_says_after_a_long_pause_is_refused_and_explained() {
    let mut running = quick().await;
    let user = User::of(&running.mesh).unwrap();
    let slow = impatient(asset("late/a", &[], r#"{"do":"commit","ms":1500}"#));
    user.deploy(manifest(vec![slow])).await.unwrap();
    let journal = running.file("journal");
    let worker = WorkerProcess::default().journal(&journal);
    let paused = worker.start(&running.mesh, &binaries()).unwrap();
    let run = user.trigger(&["late.a"]).await.unwrap().run_id;
    until_begun(&journal, 1).await;
    // Long enough that its start was reported.
    tokio::time::sleep(Duration::from_millis(800)).await;
    paused.signal(Signal::SIGSTOP).unwrap();
    let _heir: Child = worker.start(&running.mesh, &binaries()).unwrap();
    let ended = user.ended(&run).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");

    paused.signal(Signal::SIGCONT).unwrap();
    let refused = r#"servo_callback_reports_total{kind="finished",answer="refused"} 1"#;
    while !metrics(&running, Service::Callback).await.contains(refused) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let task = user.tasks(&run).await.unwrap().remove(0);
    let told = user.task(&run, &task.task_id).await.unwrap();
    let outcomes: Vec<Outcome> = told
        .attempts
        .iter()
        .map(|attempt| attempt.outcome())
        .collect();
    assert_eq!(
        outcomes,
        [Outcome::Unspecified, Outcome::Succeeded],
        "{told:?}"
    );
    let runs = [run];
    let fates = journal::fates(&user, &runs).await.unwrap();
    let tally = journal::compare(&journal::read(&journal).unwrap(), &fates, &[]);
    let lost = TransitionReason::HeartbeatTimeout.as_str_name();
    assert_eq!((tally.faults, tally.counted), (vec![], 1));
    assert_eq!(tally.explained.into_iter().collect::<Vec<_>>(), [(lost, 1)]);
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    let made: Vec<(String,)> = sqlx::query_as("SELECT asset_key FROM scheduler.materializations")
        .fetch_all(&mut admin)
        .await
        .unwrap();
    assert_eq!(
        made,
        [("late/a".to_owned(),)],
        "one version, though two were written"
    );
    // I4 there says that the winning attempt made it.
    aftermath::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().unwrap();
}

#[tokio::test]
async fn chaos_f13_no_outcome_is_lost_whatever_is_cut_and_killed_on_its_way() {
    let mut running = quick().await;
    let user = User::of(&running.mesh).unwrap();
    // Without impatience: whatever is begun has time to be heard of, so nothing but its outcome ends it.
    user.deploy(manifest(layers(2, 4, 2, r#"{"do":"sleep","ms":100}"#)))
        .await
        .unwrap();
    let journal = running.file("journal");
    let worker = WorkerProcess::default().journal(&journal);
    let cutter = Cutter::before(
        &running.mesh.address(Service::Callback),
        Duration::from_millis(500),
    )
    .await
    .unwrap();
    let _workers = [
        worker.clone(),
        worker.direct().reporting_to(&cutter.address()),
    ]
    .map(|worker| worker.start(&running.mesh, &binaries()).unwrap());
    let load = Load::start(std::slice::from_ref(&user), "layers.*", 4);
    for _ in 0..if full() { 12 } else { 1 } {
        for service in [Service::Callback, Service::Gateway] {
            load.goes_on(2).await;
            running.mesh.kill_9(service).unwrap();
            running.mesh.launch(service).unwrap();
            running.mesh.wait_until_healthy().await.unwrap();
        }
    }
    load.goes_on(4).await;
    let runs = load.stop().await.unwrap();
    let fates = journal::fates(&user, &runs).await.unwrap();
    let tally = journal::compare(&journal::read(&journal).unwrap(), &fates, &[]);
    println!("{} runs: {tally:?}", runs.len());
    assert_eq!((tally.faults, tally.counted), (vec![], runs.len() * 8));
    assert!(
        tally.explained.is_empty(),
        "outcomes were lost: {:?}",
        tally.explained
    );
    aftermath::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().unwrap();
}
