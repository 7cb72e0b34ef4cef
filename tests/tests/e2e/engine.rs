//! Runs from their trigger to their end: separate processes, a real worker, the public door.

use servo_client::api::{Outcome, RunState, TaskState};
use servo_model::Service;
use servo_tests::manifest::{asset, fan_out, manifest};
use servo_tests::user::User;

use crate::support::{Running, metrics};

fn states(tasks: &[servo_client::api::Task]) -> Vec<(String, TaskState)> {
    tasks
        .iter()
        .map(|task| (task.asset_key.clone(), task.state()))
        .collect()
}

#[tokio::test]
async fn a_diamond_with_a_retry_and_a_failure_runs_to_its_end() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(8);
    let mut flaky = asset(
        "shop/clean",
        &["shop/raw"],
        r#"{"do":"fail","category":"TRANSIENT","times":1}"#,
    );
    flaky.retry = Some(servo_client::api::RetryPolicy {
        initial_delay: Some(prost_types::Duration {
            seconds: 0,
            nanos: 10_000_000,
        }),
        ..Default::default()
    });
    let assets = vec![
        asset("shop/raw", &[], ""),
        flaky,
        asset("shop/broken", &["shop/raw"], r#"{"do":"fail"}"#),
        asset("shop/report", &["shop/clean"], ""),
        asset("shop/mail", &["shop/broken"], ""),
    ];
    user.deploy(manifest(assets)).await.unwrap();
    let run = user.trigger(&["shop.*"]).await.unwrap();
    let ended = user.ended(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), RunState::Failed, "{ended:?}");
    let tasks = user.tasks(&run.run_id).await.unwrap();
    let mut seen = states(&tasks);
    seen.sort();
    let expected = [
        ("shop/broken", TaskState::Failed),
        ("shop/clean", TaskState::Succeeded),
        ("shop/mail", TaskState::Skipped),
        ("shop/raw", TaskState::Succeeded),
        ("shop/report", TaskState::Succeeded),
    ];
    assert_eq!(seen, expected.map(|(key, state)| (key.to_owned(), state)));
    let clean = tasks
        .iter()
        .find(|task| task.asset_key == "shop/clean")
        .unwrap();
    assert_eq!((clean.attempt, clean.failures), (2, 1));

    let told = user.task(&run.run_id, &clean.task_id).await.unwrap();
    let path: Vec<TaskState> = told
        .history
        .iter()
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
    assert_eq!(path, expected);
    assert!(
        told.history
            .windows(2)
            .all(|pair| pair[0].to_state() == pair[1].from_state())
    );
    let outcomes: Vec<Outcome> = told
        .attempts
        .iter()
        .map(|attempt| attempt.outcome())
        .collect();
    assert_eq!(outcomes, [Outcome::Failed, Outcome::Succeeded]);
    let history = user.history(&run.run_id).await.unwrap();
    let path: Vec<RunState> = history.iter().map(|change| change.to_state()).collect();
    assert_eq!(
        path,
        [RunState::Pending, RunState::Running, RunState::Failed]
    );

    let told = metrics(&running, Service::Scheduler).await;
    let counted = |start: &str| {
        let line = told.lines().find(|line| line.starts_with(start));
        line.and_then(|line| line.rsplit(' ').next())
            .map(str::to_owned)
    };
    let of = "tenant_id=\"demo\",workspace_id=\"default\"";
    let succeeded = format!("servo_task_total{{{of},asset_key=\"shop/clean\",state=\"SUCCEEDED\"");
    assert_eq!(counted(&succeeded).as_deref(), Some("1"), "{told}");
    assert_eq!(
        counted(&format!("servo_run_total{{{of},state=\"FAILED\"")).as_deref(),
        Some("1"),
        "{told}"
    );
    let second = "servo_task_attempts_total{tenant_id=\"demo\",asset_key=\"shop/clean\",attempt_number=\"2\"}";
    assert_eq!(counted(second).as_deref(), Some("1"), "{told}");
    // Four of the five ended in an attempt.
    assert_eq!(
        counted("servo_task_queue_wait_seconds_count").as_deref(),
        Some("4"),
        "{told}"
    );
    assert_eq!(
        counted("servo_scheduler_shards_held ").as_deref(),
        Some("64"),
        "{told}"
    );
}

#[tokio::test]
async fn a_run_is_paused_resumed_and_cancelled() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(1);
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
    // One of the two runs, the other waits for the worker's only slot.
    user.until(&run.run_id, |tasks| tasks.active == 1 && tasks.ready == 1)
        .await
        .unwrap();
    let cancelled = user.cancel(&run.run_id).await.unwrap();
    assert_eq!(cancelled.state(), RunState::Cancelling);
    let ended = user.ended(&run.run_id).await.unwrap();
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
async fn a_run_survives_kill_9_of_every_service_on_its_way() {
    let mut running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(4);
    let nap = r#"{"do":"sleep","ms":150}"#;
    let keys: Vec<String> = (0..40).map(|n| format!("long/t{n}")).collect();
    let link = |n: usize| match n {
        0..4 => asset(&keys[n], &[], nap),
        n => asset(&keys[n], &[&keys[n - 4]], nap),
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
        let before = user.patiently(&run.run_id).await.tasks.unwrap().succeeded;
        running.mesh.process(service).unwrap().kill_group().unwrap();
        running.mesh.launch(service).unwrap();
        // Goes on before the next one is killed.
        while user.patiently(&run.run_id).await.tasks.unwrap().succeeded <= before {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    let ended = loop {
        let run = user.patiently(&run.run_id).await;
        if run.end_time.is_some() {
            break run;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
}

#[tokio::test]
async fn a_wide_run_ends_whole() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(50);
    user.deploy(fan_out(500)).await.unwrap();
    let run = user.trigger(&["fan.*"]).await.unwrap();
    let ended = user.ended(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{ended:?}");
    let counts = ended.tasks.unwrap();
    assert_eq!((counts.total, counts.succeeded), (502, 502));
}
