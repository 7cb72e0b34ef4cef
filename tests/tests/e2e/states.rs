//! Every state and every reason of the transition tables is visible through the public API.

use std::collections::BTreeSet;

use prost::Message;
use servo_client::api;
use servo_local::wait::{until, until_true};
use servo_local::{LivenessTimings, TENANT};
use servo_model::coded_enum::DocumentedEnum;
use servo_model::idempotency::IdempotencyKey;
use servo_model::states::{Machine, RunState, TaskState, TransitionReason};
use servo_model::{EventType, RunId, RunKey, Service};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::request_fingerprint;
use servo_proto::v1::event::Body;
use servo_store::{DatabaseConfig, NewEvent, Store};
use servo_tests::invariants;
use servo_tests::manifest::{asset, manifest};
use servo_tests::user::{User, WORKSPACE};
use uuid::Uuid;

use crate::support::{Running, backfill, binaries};

/// The codes in all histories.
#[derive(Debug, Default)]
struct Seen {
    task_states: BTreeSet<i16>,
    run_states: BTreeSet<i16>,
    reasons: BTreeSet<i16>,
}

impl Seen {
    async fn add(&mut self, user: &User, run_id: &str) {
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

/// Asserts that every variant was seen.
#[track_caller]
fn check<T: DocumentedEnum + Copy>(what: &str, code: fn(T) -> i16, seen: &BTreeSet<i16>) {
    let missing: Vec<&T> = T::VARIANTS
        .iter()
        .filter(|item| !seen.contains(&code(**item)))
        .collect();
    assert!(
        missing.is_empty(),
        "{what} that no history contains: {missing:?}"
    );
}

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

/// An asset with one attempt and short timeouts.
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

/// Runs that end without intervention, each in its own namespace.
fn ending_on_their_own() -> Vec<api::AssetDefinition> {
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

/// Runs that a test must cancel.
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
async fn every_state_and_reason_is_visible_through_the_api() {
    let mut running = Running::start_with(|options| options.timings(LivenessTimings::FAST)).await;
    let user = User::of(&running.mesh).unwrap();
    let worker = user.start_worker(32);
    user.deploy(manifest([ending_on_their_own(), endless()].concat()))
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
    runs.push(never_started(&user).await);
    runs.extend(stopped(&user).await);
    runs.extend(requested_by_another_service(&running, &user).await);
    runs.push(cancelled_by_force(&user).await);
    runs.push(exceeding_its_duration(&user).await);
    for run in &runs {
        user.wait_for_end(run).await.unwrap();
    }
    worker.drain();
    runs.push(pushed(&user).await);
    let mut seen = Seen::default();
    for run in &runs {
        user.wait_for_end(run).await.unwrap();
        seen.add(&user, run).await;
    }
    // A new run has no previous state.
    seen.run_states.remove(&0);
    check("task states", TaskState::code, &seen.task_states);
    check("run states", RunState::code, &seen.run_states);
    check("reasons", TransitionReason::code, &seen.reasons);
    assert_only_table_rows(&user, &runs).await;
    assert_skip_is_explained(&user, &runs[2]).await;
    invariants::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().await.unwrap();
}

/// The second of two equal runs has nothing to do.
async fn up_to_date(user: &User) -> String {
    let first = user.trigger(&["current.*"]).await.unwrap().run_id;
    user.wait_for_end(&first).await.unwrap();
    let spec = api::RunSpec {
        selection: vec!["current.*".to_owned()],
        skip_up_to_date: true,
        ..Default::default()
    };
    user.trigger_spec(spec).await.unwrap().run_id
}

/// A run whose attempts are never started, until it is cancelled.
async fn never_started(user: &User) -> String {
    let run = user.trigger(&["unheard.*"]).await.unwrap().run_id;
    let root = user.tasks(&run).await.unwrap().remove(0);
    until_true("the dispatch ack timeout", async || {
        let details = user.task(&run, &root.task_id).await.unwrap();
        details
            .history
            .iter()
            .any(|change| change.reason() == api::TransitionReason::DispatchAckTimeout)
    })
    .await;
    user.cancel(&run).await.unwrap();
    run
}

/// A run that is cancelled after a pause, and one whose worker ignores the cancellation.
async fn stopped(user: &User) -> [String; 2] {
    let obeying = user.trigger(&["stopped.*"]).await.unwrap().run_id;
    user.pause(&obeying).await.unwrap();
    user.resume(&obeying).await.unwrap();
    let deaf = user.trigger(&["deaf.*"]).await.unwrap().run_id;
    for run in [&obeying, &deaf] {
        until_true("a task to be running", async || {
            let tasks = user.tasks(run).await.unwrap();
            tasks
                .iter()
                .any(|task| task.state() == api::TaskState::Running)
        })
        .await;
        user.cancel(run).await.unwrap();
    }
    [obeying, deaf]
}

/// A run that cannot be planned, and one that another service cancels; both were accepted before
/// they were planned.
async fn requested_by_another_service(running: &Running, user: &User) -> [String; 2] {
    let unplannable = append_request(running, 1, "absent/asset").await;
    let unwanted = append_request(running, 2, "stopped.*").await;
    user.wait_for_tasks(&unwanted, "an attempt to begin", |tasks| tasks.active > 0)
        .await
        .unwrap();
    let target = mesh_pb::RunTarget {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: unwanted.clone(),
    };
    let request = mesh_pb::CancelRunsRequest {
        runs: vec![target],
        requested_by: None,
    };
    let response = backfill(&running.mesh)
        .cancel_runs(request)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        response.results[0].acceptance(),
        api::Acceptance::Folded,
        "{response:?}"
    );
    [unplannable, unwanted]
}

/// Appends only RunRequested, as the backfill service does, and waits until the run exists.
async fn append_request(running: &Running, number: u8, selection: &str) -> String {
    let run_id = RunId::from_bytes([number; 16]);
    let spec = api::RunSpec {
        selection: vec![selection.to_owned()],
        ..Default::default()
    };
    let fingerprint = request_fingerprint(&spec).unwrap();
    let key = RunKey::chosen(&format!("chunk-{number}")).unwrap();
    let request = api::RunRequested {
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
        tenant: TENANT.parse().unwrap(),
        workspace: WORKSPACE.to_owned(),
        idempotency_key: IdempotencyKey::run_requested(&key, &fingerprint).to_string(),
        correlation_id: Some(Uuid::from_bytes(*run_id.as_bytes())),
        causation_id: None,
        payload: api::Event {
            version: 1,
            trace: None,
            body: Some(Body::RunRequested(request)),
        }
        .encode_to_vec(),
    };
    let (url, password) = running.mesh.role_access();
    let config = DatabaseConfig::new(url.to_owned(), password.to_owned());
    let store = Store::connect(Service::Backfill, &config).unwrap();
    store.ledger().append(vec![event]).await.unwrap();
    let user = User::of(&running.mesh).unwrap();
    until_true("the appended run to exist", async || {
        user.run(&run_id.to_string()).await.is_ok()
    })
    .await;
    run_id.to_string()
}

/// A run whose worker sends no heartbeats, cancelled by force.
async fn cancelled_by_force(user: &User) -> String {
    let run = user.trigger(&["forced.*"]).await.unwrap().run_id;
    user.wait_for_tasks(&run, "the attempt to begin", |tasks| tasks.active == 1)
        .await
        .unwrap();
    let root = user.tasks(&run).await.unwrap().remove(0);
    let request = api::ForceCancelTaskRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: run.clone(),
        task_id: root.task_id,
        ..Default::default()
    };
    until_true("half of the heartbeat timeout to pass", async || {
        let mut scheduler = user.client.scheduler();
        scheduler.force_cancel_task(request.clone()).await.is_ok()
    })
    .await;
    run
}

/// A run that is longer than the limit of one second.
async fn exceeding_its_duration(user: &User) -> String {
    let limits = api::QuotaLimits {
        max_run_duration: seconds(1),
        ..Default::default()
    };
    user.set_limits(limits).await.unwrap();
    let run = until("the limit of the duration to hold", async || {
        let run = user.trigger(&["overdue.*"]).await.unwrap();
        let limit = run.deadline.unwrap().seconds - run.create_time.unwrap().seconds;
        if limit <= 2 {
            return Some(run.run_id);
        }
        user.cancel(&run.run_id).await.unwrap();
        None
    })
    .await;
    user.set_limits(api::QuotaLimits::default()).await.unwrap();
    run
}

/// A run whose task stays in the queue until its push worker listens.
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
    until_true("the task to be dispatched", async || {
        user.tasks(&run).await.unwrap()[0].state() == api::TaskState::Dispatched
    })
    .await;
    tokio::spawn(worker.run(listener));
    run
}

/// Asserts that the skip reason of user code is in the attempt and in the history.
async fn assert_skip_is_explained(user: &User, run: &str) {
    let root = user.tasks(run).await.unwrap().remove(0);
    let details = user.task(run, &root.task_id).await.unwrap();
    let reasons: Vec<&str> = details
        .attempts
        .iter()
        .map(|attempt| attempt.skip_reason.as_str())
        .collect();
    assert_eq!(reasons, ["there is nothing to do"]);
    assert_eq!(
        details.history.last().unwrap().detail,
        "there is nothing to do"
    );
}

/// Asserts that the tables contain every transition.
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
