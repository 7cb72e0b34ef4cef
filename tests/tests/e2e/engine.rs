//! Runs from their trigger to their end: separate processes, a real worker, the public door.

use servo_client::api::{RunState, TaskState};
use servo_tests::manifest::{asset, fan_out, manifest};
use servo_tests::user::User;

use crate::support::Running;

fn states(tasks: &[servo_client::api::Task]) -> Vec<(String, TaskState)> {
    tasks.iter().map(|task| (task.asset_key.clone(), task.state())).collect()
}

#[tokio::test]
async fn a_diamond_with_a_retry_and_a_failure_runs_to_its_end() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(8);
    let mut flaky = asset("shop/clean", &["shop/raw"], r#"{"do":"fail","category":"TRANSIENT","times":1}"#);
    flaky.retry = Some(servo_client::api::RetryPolicy {
        initial_delay: Some(prost_types::Duration { seconds: 0, nanos: 10_000_000 }),
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
    let clean = tasks.iter().find(|task| task.asset_key == "shop/clean").unwrap();
    assert_eq!((clean.attempt, clean.failures), (2, 1));
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
