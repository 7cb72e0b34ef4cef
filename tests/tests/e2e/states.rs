//! Every state and every reason of the closed tables is seen through the public API, or stands in a list with the
//! cause why not.

use std::collections::BTreeSet;

use servo_client::api;
use servo_local::LivenessPace;
use servo_model::closed::Listed;
use servo_model::states::{Machine, RunState, TaskState, TransitionReason};
use servo_tests::aftermath;
use servo_tests::manifest::{asset, manifest};
use servo_tests::user::User;

use crate::support::{Running, binaries};

const NO_PUSH: &str = "only the push queue says so, and nothing is pushed yet";
const NO_FORCE_CANCEL: &str = "ForceCancelTask is not served yet";
const NO_DURATION: &str = "a run may last a day, and nobody can ask for less yet";
const NO_REQUESTS: &str =
    "only a run that a schedule or a backfill asks for is accepted before it is planned";

/// What no scenario can reach yet. Whoever makes one of them reachable adds a scenario and takes it out.
const TASK_STATES_UNSEEN: &[(TaskState, &str)] = &[(TaskState::Dispatched, NO_PUSH)];
const RUN_STATES_UNSEEN: &[(RunState, &str)] = &[(RunState::TimedOut, NO_DURATION)];
const REASONS_UNSEEN: &[(TransitionReason, &str)] = &[
    (TransitionReason::DispatchedToWorker, NO_PUSH),
    (TransitionReason::ForceCancelled, NO_FORCE_CANCEL),
    (TransitionReason::UpstreamCancelled, NO_FORCE_CANCEL),
    (TransitionReason::TasksCancelled, NO_FORCE_CANCEL),
    (TransitionReason::RunTimedOut, NO_DURATION),
    (TransitionReason::PlanFailed, NO_REQUESTS),
    (TransitionReason::SystemCancelled, NO_REQUESTS),
];

/// What histories told.
#[derive(Debug, Default)]
struct Seen {
    task_states: BTreeSet<i16>,
    run_states: BTreeSet<i16>,
    reasons: BTreeSet<i16>,
}

impl Seen {
    async fn look(&mut self, user: &User, run_id: &str) {
        for change in user.history(run_id).await.unwrap() {
            self.run_states.extend([code(change.from_state), code(change.to_state)]);
            self.reasons.insert(code(change.reason));
        }
        for task in user.tasks(run_id).await.unwrap() {
            for change in user.task(run_id, &task.task_id).await.unwrap().history {
                self.task_states.extend([code(change.from_state), code(change.to_state)]);
                self.reasons.insert(code(change.reason));
            }
        }
    }
}

fn code(number: i32) -> i16 {
    i16::try_from(number).unwrap()
}

/// Everything in the list was seen, except what is excused; and nothing excused was.
#[track_caller]
fn check<T: Listed + Copy>(what: &str, code: fn(T) -> i16, seen: &BTreeSet<i16>, unseen: &[(T, &str)]) {
    let excused: BTreeSet<i16> = unseen.iter().map(|(item, _)| code(*item)).collect();
    let missing: Vec<&T> = T::ITEMS
        .iter()
        .filter(|item| !seen.contains(&code(**item)) && !excused.contains(&code(**item)))
        .collect();
    assert!(missing.is_empty(), "{what} that no history shows: {missing:?}");
    let back: Vec<&(T, &str)> = unseen.iter().filter(|(item, _)| seen.contains(&code(*item))).collect();
    assert!(back.is_empty(), "{what} that are seen now; take them out of the list: {back:?}");
}

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

/// One try, and little patience.
fn strict(key: &str, config: &str) -> api::AssetDefinition {
    let timeouts = api::Timeouts { execution: seconds(30), dispatch_ack: seconds(2), heartbeat: seconds(3) };
    let retry = api::RetryPolicy { max_attempts: 1, ..Default::default() };
    api::AssetDefinition { timeouts: Some(timeouts), retry: Some(retry), ..asset(key, &[], config) }
}

/// Runs that end by themselves, each a namespace of its own.
fn ending_by_themselves() -> Vec<api::AssetDefinition> {
    let quickly = api::RetryPolicy {
        initial_delay: Some(prost_types::Duration { seconds: 0, nanos: 10_000_000 }),
        ..Default::default()
    };
    let flaky = asset("plain/flaky", &["plain/root"], r#"{"do":"fail","category":"TRANSIENT","times":1}"#);
    let slow = strict("late/slow", r#"{"do":"sleep","ms":60000}"#);
    let soon = api::Timeouts { execution: seconds(1), ..slow.timeouts.unwrap_or_default() };
    let mut each = asset("mapped/each", &["mapped/list"], "");
    each.dependencies[0].mapped = true;
    vec![
        asset("plain/root", &[], r#"{"do":"sleep","ms":400}"#),
        api::AssetDefinition { retry: Some(quickly), ..flaky },
        strict("broken/root", r#"{"do":"fail"}"#),
        asset("broken/behind", &["broken/root"], ""),
        api::AssetDefinition { may_skip: true, ..asset("skipped/root", &[], r#"{"do":"skip"}"#) },
        asset("back/root", &[], r#"{"do":"give_back"}"#),
        api::AssetDefinition { timeouts: Some(soon), ..slow },
        strict("silent/root", r#"{"do":"freeze"}"#),
        strict("checked/root", r#"{"do":"blocked_by_check"}"#),
        api::AssetDefinition {
            yields_items: true,
            ..asset("mapped/list", &[], r#"{"do":"items","count":2}"#)
        },
        each,
        api::AssetDefinition { quarantine: true, ..asset("doubted/root", &[], r#"{"do":"quarantine"}"#) },
        asset("doubted/behind", &["doubted/root"], ""),
        asset("current/root", &[], ""),
        asset("current/behind", &["current/root"], ""),
    ]
}

const ENDING: [&str; 9] =
    ["plain", "broken", "skipped", "back", "late", "silent", "checked", "mapped", "doubted"];

/// Runs that somebody has to stop.
fn endless() -> Vec<api::AssetDefinition> {
    vec![
        strict("unheard/root", r#"{"do":"hang"}"#),
        strict("stopped/root", r#"{"do":"sleep","ms":60000}"#),
        asset("stopped/behind", &["stopped/root"], ""),
        strict("deaf/root", r#"{"do":"deaf","ms":3000}"#),
    ]
}

#[tokio::test]
async fn every_state_and_reason_is_seen_from_outside() {
    let mut running = Running::start_with(|options| options.pace(LivenessPace::QUICK)).await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(32);
    user.deploy(manifest([ending_by_themselves(), endless()].concat())).await.unwrap();
    let mut runs = Vec::new();
    for namespace in ENDING {
        runs.push(user.trigger(&[&format!("{namespace}.*")]).await.unwrap().run_id);
    }
    runs.push(up_to_date(&user).await);
    runs.push(never_picked_up(&user).await);
    runs.extend(stopped(&user).await);
    let mut seen = Seen::default();
    for run in &runs {
        user.ended(run).await.unwrap();
        seen.look(&user, run).await;
    }
    // A run comes from nowhere.
    seen.run_states.remove(&0);
    check("task states", TaskState::code, &seen.task_states, TASK_STATES_UNSEEN);
    check("run states", RunState::code, &seen.run_states, RUN_STATES_UNSEEN);
    check("reasons", TransitionReason::code, &seen.reasons, REASONS_UNSEEN);
    assert_only_table_rows(&user, &runs).await;
    aftermath::check(&mut running.mesh, &binaries()).await.unwrap();
    running.mesh.stop().unwrap();
}

/// The second of two equal runs finds nothing to do.
async fn up_to_date(user: &User) -> String {
    let first = user.trigger(&["current.*"]).await.unwrap().run_id;
    user.ended(&first).await.unwrap();
    let spec =
        api::RunSpec { selection: vec!["current.*".to_owned()], skip_up_to_date: true, ..Default::default() };
    user.trigger_spec(spec).await.unwrap().run_id
}

/// Nobody starts it, again and again, until it is cancelled.
async fn never_picked_up(user: &User) -> String {
    let run = user.trigger(&["unheard.*"]).await.unwrap().run_id;
    let root = user.tasks(&run).await.unwrap().remove(0);
    let given_up = |told: &api::GetTaskResponse| {
        told.history.iter().any(|change| change.reason() == api::TransitionReason::DispatchAckTimeout)
    };
    while !given_up(&user.task(&run, &root.task_id).await.unwrap()) {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    user.cancel(&run).await.unwrap();
    run
}

/// One that heeds a cancel, after a pause, and one that does not.
async fn stopped(user: &User) -> [String; 2] {
    let heeding = user.trigger(&["stopped.*"]).await.unwrap().run_id;
    user.pause(&heeding).await.unwrap();
    user.resume(&heeding).await.unwrap();
    let deaf = user.trigger(&["deaf.*"]).await.unwrap().run_id;
    for run in [&heeding, &deaf] {
        let runs = |tasks: Vec<api::Task>| tasks.iter().any(|task| task.state() == api::TaskState::Running);
        while !runs(user.tasks(run).await.unwrap()) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        user.cancel(run).await.unwrap();
    }
    [heeding, deaf]
}

/// Nothing moved in a way that the tables do not know.
async fn assert_only_table_rows(user: &User, runs: &[String]) {
    let rows: BTreeSet<(i16, i16, i16)> =
        TaskState::TABLE.iter().map(|row| (row.from.code(), row.to.code(), row.reason.code())).collect();
    for run in runs {
        for task in user.tasks(run).await.unwrap() {
            for change in user.task(run, &task.task_id).await.unwrap().history {
                let row = (code(change.from_state), code(change.to_state), code(change.reason));
                assert!(rows.contains(&row), "{}: {change:?}", task.task_key);
            }
        }
    }
}
