//! Counters of the services after a run, on a mesh in which nothing else runs.

use servo_client::api::RunState;
use servo_local::TENANT;
use servo_model::Service;
use servo_tests::user::User;

use crate::engine::run_shop;
use crate::support::{Running, metrics};

/// The value of the first series that begins with `start`.
#[track_caller]
fn check(page: &str, start: &str, expected: &str) {
    let line = page.lines().find(|line| line.starts_with(start));
    let value = line.and_then(|line| line.rsplit(' ').next());
    assert_eq!(value, Some(expected), "{start} in {page}");
}

#[tokio::test]
async fn a_run_is_counted_by_the_scheduler_and_the_callback() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let run = run_shop(&user).await;
    assert_eq!(run.state(), RunState::Failed, "{run:?}");

    let scheduler = metrics(&running.mesh, Service::Scheduler).await;
    let scope = format!("tenant_id=\"{TENANT}\",workspace_id=\"default\"");
    for (start, expected) in [
        (
            format!("servo_task_total{{{scope},asset_key=\"shop/clean\",state=\"SUCCEEDED\""),
            "1",
        ),
        (format!("servo_run_total{{{scope},state=\"FAILED\""), "1"),
        (
            format!(
                "servo_task_attempts_total{{tenant_id=\"{TENANT}\",asset_key=\"shop/clean\",attempt_number=\"2\"}}"
            ),
            "1",
        ),
        // Four of the five tasks ended in an attempt; the fifth was skipped.
        ("servo_task_queue_wait_seconds_count".to_owned(), "4"),
        ("servo_scheduler_shards_held ".to_owned(), "64"),
    ] {
        check(&scheduler, &start, expected);
    }
    let callback = metrics(&running.mesh, Service::Callback).await;
    let finished = r#"servo_callback_reports_total{kind="finished",answer="folded"}"#;
    // One attempt of each of the four tasks, and the retry.
    check(&callback, finished, "5");
}
