//! Every state and every reason of the closed tables is seen through the public API.

use std::collections::BTreeSet;

use prost::Message;
use servo_client::api;
use servo_local::{LivenessPace, TENANT};
use servo_model::closed::Listed;
use servo_model::idempotency::IdempotencyKey;
use servo_model::states::{Machine, RunState, TaskState, TransitionReason};
use servo_model::{EventType, RunId, RunKey, Service};
use servo_proto::request_fingerprint;
use servo_proto::v1::event::Body;
use servo_store::{DatabaseConfig, NewEvent, Store};
use servo_tests::aftermath;
use servo_tests::manifest::{asset, manifest};
use servo_tests::user::{User, WORKSPACE};
use uuid::Uuid;

use crate::support::{Running, backfill, binaries};

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
            self.run_states
                .extend([code(change.from_state), code(change.to_state)]);
            self.reasons.insert(code(change.reason));
        }
        for task in user.tasks(run_id).await.unwrap() {
            for change in user.task(run_id, &task.task_id).await.unwrap().history {
                self.task_states
                    .extend([code(change.from_state), code(change.to_state)]);
                self.reasons.insert(code(change.reason));
            }
        }
    }
}

fn code(number: i32) -> i16 {
    i16::try_from(number).unwrap()
}

/// Everything in the list was seen.
#[track_caller]
fn check<T: Listed + Copy>(what: &str, code: fn(T) -> i16, seen: &BTreeSet<i16>) {
    let missing: Vec<&T> = T::ITEMS
        .iter()
        .filter(|item| !seen.contains(&code(**item)))
        .collect();
    assert!(
        missing.is_empty(),
        "{what} that no history shows: {missing:?}"
    );
}

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

/// One try, and little patience.
fn strict(key: &str, config: &str) -> api::AssetDefinition {
    let timeouts = api::Timeouts {
        execution: seconds(30),
        dispatch_ack: seconds(2),
        heartbeat: seconds(3),
    };
    let retry = api::RetryPolicy {
        max_attempts: 1,
        ..Default::default()
    };
    api::AssetDefinition {
        timeouts: Some(timeouts),
        retry: Some(retry),
        ..asset(key, &[], config)
    }
}

/// Runs that end by themselves, each a namespace of its own.
fn ending_by_themselves() -> Vec<api::AssetDefinition> {
    let quickly = api::RetryPolicy {
        initial_delay: Some(prost_types::Duration {
            seconds: 0,
            nanos: 10_000_000,
        }),
        ..Default::default()
    };
    let flaky = asset(
        "plain/flaky",
        &["plain/root"],
        r#"{"do":"fail","category":"TRANSIENT","times":1}"#,
    );
    let slow = strict("late/slow", r#"{"do":"sleep","ms":60000}"#);
    let soon = api::Timeouts {
        execution: seconds(1),
        ..slow.timeouts.unwrap_or_default()
    };
    let mut each = asset("mapped/each", &["mapped/list"], "");
    each.dependencies[0].mapped = true;
    vec![
        asset("plain/root", &[], r#"{"do":"sleep","ms":400}"#),
        api::AssetDefinition {
            retry: Some(quickly),
            ..flaky
        },
        strict("broken/root", r#"{"do":"fail"}"#),
        asset("broken/behind", &["broken/root"], ""),
        api::AssetDefinition {
            may_skip: true,
            ..asset("skipped/root", &[], r#"{"do":"skip"}"#)
        },
        asset("back/root", &[], r#"{"do":"give_back"}"#),
        api::AssetDefinition {
            timeouts: Some(soon),
            ..slow
        },
        strict("silent/root", r#"{"do":"freeze"}"#),
        strict("checked/root", r#"{"do":"blocked_by_check"}"#),
        api::AssetDefinition {
            yields_items: true,
            ..asset("mapped/list", &[], r#"{"do":"items","count":2}"#)
        },
        each,
        api::AssetDefinition {
            quarantine: true,
            ..asset("doubted/root", &[], r#"{"do":"quarantine"}"#)
        },
        asset("doubted/behind", &["doubted/root"], ""),
        asset("current/root", &[], ""),
        asset("current/behind", &["current/root"], ""),
    ]
}

const ENDING: [&str; 9] = [
    "plain", "broken", "skipped", "back", "late", "silent", "checked", "mapped", "doubted",
];

/// Runs that somebody has to stop.
fn endless() -> Vec<api::AssetDefinition> {
    let patient = api::Timeouts {
        heartbeat: seconds(3),
        ..Default::default()
    };
    vec![
        strict("unheard/root", r#"{"do":"hang"}"#),
        strict("stopped/root", r#"{"do":"sleep","ms":60000}"#),
        asset("stopped/behind", &["stopped/root"], ""),
        strict("deaf/root", r#"{"do":"deaf","ms":3000}"#),
        strict("overdue/root", r#"{"do":"sleep","ms":60000}"#),
        asset("overdue/behind", &["overdue/root"], ""),
        api::AssetDefinition {
            timeouts: Some(patient),
            ..asset("forced/root", &[], r#"{"do":"hang"}"#)
        },
        asset("forced/behind", &["forced/root"], ""),
        asset("pushed/root", &[], ""),
    ]
}

#[tokio::test]
async fn every_state_and_reason_is_seen_from_outside() {
    let mut running = Running::start_with(|options| options.pace(LivenessPace::QUICK)).await;
    let user = User::of(&running.mesh).unwrap();
    let worker = user.work(32);
    user.deploy(manifest([ending_by_themselves(), endless()].concat()))
        .await
        .unwrap();
    let mut runs = Vec::new();
    for namespace in ENDING {
        runs.push(
            user.trigger(&[&format!("{namespace}.*")])
                .await
                .unwrap()
                .run_id,
        );
    }
    runs.push(up_to_date(&user).await);
    runs.push(never_picked_up(&user).await);
    runs.extend(stopped(&user).await);
    runs.extend(asked_for_by_another_service(&running, &user).await);
    runs.push(ended_by_force(&user).await);
    runs.push(lasting_too_long(&user).await);
    for run in &runs {
        user.ended(run).await.unwrap();
    }
    worker.leave();
    runs.push(pushed(&user).await);
    let mut seen = Seen::default();
    for run in &runs {
        user.ended(run).await.unwrap();
        seen.look(&user, run).await;
    }
    // A run comes from nowhere.
    seen.run_states.remove(&0);
    check("task states", TaskState::code, &seen.task_states);
    check("run states", RunState::code, &seen.run_states);
    check("reasons", TransitionReason::code, &seen.reasons);
    assert_only_table_rows(&user, &runs).await;
    assert_skip_is_explained(&user, &runs[2]).await;
    aftermath::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().unwrap();
}

/// The second of two equal runs finds nothing to do.
async fn up_to_date(user: &User) -> String {
    let first = user.trigger(&["current.*"]).await.unwrap().run_id;
    user.ended(&first).await.unwrap();
    let spec = api::RunSpec {
        selection: vec!["current.*".to_owned()],
        skip_up_to_date: true,
        ..Default::default()
    };
    user.trigger_spec(spec).await.unwrap().run_id
}

/// Nobody starts it, again and again, until it is cancelled.
async fn never_picked_up(user: &User) -> String {
    let run = user.trigger(&["unheard.*"]).await.unwrap().run_id;
    let root = user.tasks(&run).await.unwrap().remove(0);
    let given_up = |told: &api::GetTaskResponse| {
        told.history
            .iter()
            .any(|change| change.reason() == api::TransitionReason::DispatchAckTimeout)
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
        let runs = |tasks: Vec<api::Task>| {
            tasks
                .iter()
                .any(|task| task.state() == api::TaskState::Running)
        };
        while !runs(user.tasks(run).await.unwrap()) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        user.cancel(run).await.unwrap();
    }
    [heeding, deaf]
}

/// One that cannot be planned, and one that Servo itself cancels; both accepted before they were planned.
async fn asked_for_by_another_service(running: &Running, user: &User) -> [String; 2] {
    let unplannable = append_request(running, 1, "absent/asset").await;
    let unwanted = append_request(running, 2, "stopped.*").await;
    user.until(&unwanted, |tasks| tasks.active > 0)
        .await
        .unwrap();
    let target = api::RunTarget {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: unwanted.clone(),
    };
    let asked = api::CancelRunsRequest {
        runs: vec![target],
        requested_by: None,
    };
    let told = backfill(&running.mesh)
        .cancel_runs(asked)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        told.results[0].acceptance(),
        api::Acceptance::Folded,
        "{told:?}"
    );
    [unplannable, unwanted]
}

/// RunRequested alone, as the backfill service appends it. Answers when the run is there.
async fn append_request(running: &Running, number: u8, selection: &str) -> String {
    let run_id = RunId::from_bytes([number; 16]);
    let spec = api::RunSpec {
        selection: vec![selection.to_owned()],
        ..Default::default()
    };
    let fingerprint = request_fingerprint(&spec).unwrap();
    let key = RunKey::chosen(&format!("chunk-{number}")).unwrap();
    let asked = api::RunRequested {
        run_id: run_id.to_string(),
        run_key: key.to_string(),
        request_fingerprint: fingerprint.to_string(),
        generation: 1,
        spec: Some(spec),
        ..Default::default()
    };
    let event = NewEvent {
        event_id: Uuid::from_u128(ulid::Ulid::generate().into()),
        kind: EventType::RunRequested,
        version: 1,
        shard: run_id.shard(),
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        idempotency_key: IdempotencyKey::run_requested(&key, &fingerprint).to_string(),
        correlation_id: Some(Uuid::from_bytes(*run_id.as_bytes())),
        causation_id: None,
        payload: api::Event {
            version: 1,
            trace: None,
            body: Some(Body::RunRequested(asked)),
        }
        .encode_to_vec(),
    };
    let (url, password) = running.mesh.role_access();
    let config = DatabaseConfig::new(url.to_owned(), password.to_owned());
    let store = Store::connect(Service::Backfill, &config).unwrap();
    store.ledger().append(vec![event]).await.unwrap();
    let user = User::of(&running.mesh).unwrap();
    while user.run(&run_id.to_string()).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    run_id.to_string()
}

/// Its worker has it and does not beat.
async fn ended_by_force(user: &User) -> String {
    let run = user.trigger(&["forced.*"]).await.unwrap().run_id;
    user.until(&run, |tasks| tasks.active == 1).await.unwrap();
    let root = user.tasks(&run).await.unwrap().remove(0);
    let asked = api::ForceCancelTaskRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: run.clone(),
        task_id: root.task_id,
        ..Default::default()
    };
    while user
        .client
        .scheduler()
        .force_cancel_task(asked.clone())
        .await
        .is_err()
    {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    run
}

/// The tenant's runs may last a second.
async fn lasting_too_long(user: &User) -> String {
    let limits = api::QuotaLimits {
        max_run_duration: seconds(1),
        ..Default::default()
    };
    user.limit(limits).await.unwrap();
    loop {
        let run = user.trigger(&["overdue.*"]).await.unwrap();
        let lasts = run.deadline.unwrap().seconds - run.create_time.unwrap().seconds;
        if lasts <= 2 {
            user.limit(api::QuotaLimits::default()).await.unwrap();
            return run.run_id;
        }
        user.cancel(&run.run_id).await.unwrap();
    }
}

/// In the queue until its worker listens.
async fn pushed(user: &User) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/push", listener.local_addr().unwrap());
    let (register, worker) = user.push_worker(&url, 4);
    user.client
        .dispatcher()
        .register_worker(register)
        .await
        .unwrap();
    let run = user.trigger(&["pushed.*"]).await.unwrap().run_id;
    while user.tasks(&run).await.unwrap()[0].state() != api::TaskState::Dispatched {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    tokio::spawn(worker.run(listener));
    run
}

/// What user code said when it skipped stands with the attempt and in the task's history.
async fn assert_skip_is_explained(user: &User, run: &str) {
    let root = user.tasks(run).await.unwrap().remove(0);
    let told = user.task(run, &root.task_id).await.unwrap();
    let reasons: Vec<&str> = told
        .attempts
        .iter()
        .map(|attempt| attempt.skip_reason.as_str())
        .collect();
    assert_eq!(reasons, ["there is nothing to do"]);
    assert_eq!(
        told.history.last().unwrap().detail,
        "there is nothing to do"
    );
}

/// Nothing moved in a way that the tables do not know.
async fn assert_only_table_rows(user: &User, runs: &[String]) {
    let rows: BTreeSet<(i16, i16, i16)> = TaskState::TABLE
        .iter()
        .map(|row| (row.from.code(), row.to.code(), row.reason.code()))
        .collect();
    for run in runs {
        for task in user.tasks(run).await.unwrap() {
            for change in user.task(run, &task.task_id).await.unwrap().history {
                let row = (
                    code(change.from_state),
                    code(change.to_state),
                    code(change.reason),
                );
                assert!(rows.contains(&row), "{}: {change:?}", task.task_key);
            }
        }
    }
}
