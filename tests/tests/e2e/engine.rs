//! Runs from their trigger to their end: separate processes, a real worker, the gateway.

use servo_client::api::{self, Outcome, RunState, TaskState};
use servo_local::LivenessTimings;
use servo_local::wait::{until, until_true};
use servo_model::Service;
use servo_tests::manifest::{asset, fan_out, manifest, with_short_timeouts};
use servo_tests::user::User;

use crate::support::Running;

/// raw -> clean -> report, raw -> broken -> mail; the first attempt of `clean` fails, `broken`
/// always fails.
pub(crate) fn shop() -> api::Manifest {
    let flaky = r#"{"do":"fail","category":"TRANSIENT","times":1}"#;
    let clean = api::AssetDefinition {
        retry: Some(api::RetryPolicy {
            initial_delay: Some(prost_types::Duration {
                seconds: 0,
                nanos: 10_000_000,
            }),
            ..Default::default()
        }),
        ..asset("shop/clean", &["shop/raw"], flaky)
    };
    manifest(vec![
        asset("shop/raw", &[], ""),
        clean,
        asset("shop/broken", &["shop/raw"], r#"{"do":"fail"}"#),
        asset("shop/report", &["shop/clean"], ""),
        asset("shop/mail", &["shop/broken"], ""),
    ])
}

/// Runs [`shop`] to its end.
pub(crate) async fn run_shop(user: &User) -> api::Run {
    let _worker = user.start_worker(8);
    user.deploy(shop()).await.unwrap();
    let run = user.trigger(&["shop.*"]).await.unwrap();
    user.wait_for_end(&run.run_id).await.unwrap()
}

#[tokio::test]
async fn a_failure_skips_only_dependent_tasks_and_fails_the_run() {
    let running = Running::shared().await;
    let user = running.user();
    let run = run_shop(&user).await;
    assert_eq!(run.state(), RunState::Failed, "{run:?}");
    let mut states: Vec<(String, TaskState)> = (user.tasks(&run.run_id).await.unwrap().iter())
        .map(|task| (task.asset_key.clone(), task.state()))
        .collect();
    states.sort();
    let expected = [
        ("shop/broken", TaskState::Failed),
        ("shop/clean", TaskState::Succeeded),
        ("shop/mail", TaskState::Skipped),
        ("shop/raw", TaskState::Succeeded),
        ("shop/report", TaskState::Succeeded),
    ];
    assert_eq!(states, expected.map(|(key, state)| (key.to_owned(), state)));
}

#[tokio::test]
async fn histories_show_every_transition_of_a_retried_task_and_its_run() {
    let running = Running::shared().await;
    let user = running.user();
    let run_id = run_shop(&user).await.run_id;
    let tasks = user.tasks(&run_id).await.unwrap();
    let is_clean = |task: &&api::Task| task.asset_key == "shop/clean";
    let clean = tasks.iter().find(is_clean).unwrap();
    assert_eq!((clean.attempt, clean.failures), (2, 1));

    let details = user.task(&run_id, &clean.task_id).await.unwrap();
    let states: Vec<TaskState> = (details.history.iter())
        .map(|change| change.to_state())
        .collect();
    let expected = [
        TaskState::Blocked,
        TaskState::Ready,
        TaskState::Queued,
        TaskState::RetryWait,
        TaskState::Ready,
        TaskState::Queued,
        TaskState::Succeeded,
    ];
    assert_eq!(states, expected);
    let continues = |pair: &[api::TaskTransition]| pair[0].to_state() == pair[1].from_state();
    assert!(details.history.windows(2).all(continues), "{details:?}");
    let outcomes: Vec<Outcome> = (details.attempts.iter())
        .map(|attempt| attempt.outcome())
        .collect();
    assert_eq!(outcomes, [Outcome::Failed, Outcome::Succeeded]);

    let history = user.history(&run_id).await.unwrap();
    let states: Vec<RunState> = history.iter().map(|change| change.to_state()).collect();
    let expected = [RunState::Pending, RunState::Running, RunState::Failed];
    assert_eq!(states, expected);
}

#[tokio::test]
async fn a_run_is_paused_resumed_and_cancelled() {
    let running = Running::shared().await;
    let user = running.user();
    let _worker = user.start_worker(1);
    let slow = r#"{"do":"sleep","ms":60000}"#;
    let assets = vec![
        asset("slow/a", &[], slow),
        asset("slow/b", &[], slow),
        asset("slow/c", &["slow/a"], ""),
    ];
    user.deploy(manifest(assets)).await.unwrap();
    let run = user.trigger(&["slow.*"]).await.unwrap();
    let paused = user.pause(&run.run_id).await.unwrap();
    assert_eq!((paused.state(), paused.version), (RunState::Paused, 1));
    let resumed = user.resume(&run.run_id).await.unwrap();
    assert_eq!((resumed.state(), resumed.version), (RunState::Running, 2));
    // The worker has only one slot for the two tasks without a dependency.
    let one_slot = "one task to be active and one to wait for the slot";
    user.wait_for_tasks(&run.run_id, one_slot, |tasks| {
        tasks.active == 1 && tasks.ready == 1
    })
    .await
    .unwrap();
    let cancelled = user.cancel(&run.run_id).await.unwrap();
    // The answer shows the run as it is now, and the worker may have stopped already.
    assert!(
        matches!(
            cancelled.state(),
            RunState::Cancelling | RunState::Cancelled
        ),
        "{cancelled:?}"
    );
    let ended = user.wait_for_end(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), RunState::Cancelled);
    let tasks = user.tasks(&run.run_id).await.unwrap();
    assert!(
        tasks
            .iter()
            .all(|task| task.state() == TaskState::Cancelled),
        "{tasks:?}"
    );
    let refused = user.cancel(&run.run_id).await.unwrap_err();
    assert!(
        format!("{refused:#}").contains("is CANCELLED and cannot be cancelled"),
        "{refused:#}"
    );
    let listed = user.runs().await.unwrap();
    assert_eq!(
        listed
            .iter()
            .map(|run| run.run_id.as_str())
            .collect::<Vec<_>>(),
        [run.run_id.as_str()]
    );
}

#[tokio::test]
async fn a_run_survives_kill_9_of_every_service_that_handles_it() {
    let mut running = Running::start_with(|options| options.timings(LivenessTimings::FAST)).await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.start_worker(4);
    let sleep = r#"{"do":"sleep","ms":150}"#;
    let keys: Vec<String> = (0..40).map(|n| format!("long/t{n}")).collect();
    // An envelope may be lost with a killed process; its task is dispatched again after the timeout.
    let link = |n: usize| match n {
        0..4 => with_short_timeouts(asset(&keys[n], &[], sleep)),
        n => with_short_timeouts(asset(&keys[n], &[&keys[n - 4]], sleep)),
    };
    user.deploy(manifest((0..40).map(link).collect()))
        .await
        .unwrap();
    let run = user.trigger(&["long.*"]).await.unwrap();
    for service in [
        Service::Scheduler,
        Service::Dispatcher,
        Service::Callback,
        Service::Gateway,
    ] {
        let succeeded = async || {
            let run = user.run_when_reachable(&run.run_id).await;
            run.tasks.unwrap().succeeded
        };
        let before = succeeded().await;
        running.mesh.process(service).unwrap().kill_group().unwrap();
        running.mesh.launch(service).unwrap();
        until_true("a task to succeed before the next kill", async || {
            succeeded().await > before
        })
        .await;
    }
    let ended = until("the run to end", async || {
        let run = user.run_when_reachable(&run.run_id).await;
        run.end_time.is_some().then_some(run)
    })
    .await;
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
}

#[tokio::test]
async fn all_500_tasks_of_a_wide_run_succeed() {
    let running = Running::shared().await;
    let user = running.user();
    let _worker = user.start_worker(50);
    user.deploy(fan_out(500)).await.unwrap();
    let run = user.trigger(&["fan.*"]).await.unwrap();
    let ended = user.wait_for_end(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
    let counts = ended.tasks.unwrap();
    assert_eq!((counts.total, counts.succeeded), (502, 502));
}
