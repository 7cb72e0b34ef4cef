//! Runs that are triggered twice, retried, cancelled by force, and forwarded between schedulers.

use std::collections::BTreeSet;
use std::process::Stdio;

use servo_client::api::{self, RetryScope, RunKeyPolicy, RunState, TaskState};
use servo_local::wait::{until, until_true};
use servo_local::{Child, LocalMesh, free_port};
use servo_mesh::error::{Reason, reason_of};
use servo_model::{Service, Stream};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1;
use servo_store::{DatabaseConfig, Store};
use servo_tests::manifest::{asset, chain, manifest};
use servo_tests::user::{User, WORKSPACE};
use tonic::Status;
use tonic_types::StatusExt;

use crate::support::{Running, backfill, binaries};

fn trigger_request(
    user: &User,
    request_id: &str,
    run_key: &str,
    selection: &str,
) -> api::TriggerRunRequest {
    api::TriggerRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        request_id: request_id.to_owned(),
        run_key: run_key.to_owned(),
        spec: Some(api::RunSpec {
            selection: vec![selection.to_owned()],
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn with_policy(policy: RunKeyPolicy, request: api::TriggerRunRequest) -> api::TriggerRunRequest {
    api::TriggerRunRequest {
        run_key_policy: policy.into(),
        ..request
    }
}

fn retry(user: &User, request_id: &str, run_id: &str, scope: RetryScope) -> api::RetryRunRequest {
    api::RetryRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        request_id: request_id.to_owned(),
        run_id: run_id.to_owned(),
        scope: scope.into(),
        ..Default::default()
    }
}

async fn trigger(
    user: &User,
    request: api::TriggerRunRequest,
) -> Result<api::TriggerRunResponse, Status> {
    Ok(user
        .client
        .scheduler()
        .trigger_run(request)
        .await?
        .into_inner())
}

async fn retried(user: &User, request: api::RetryRunRequest) -> Result<api::Run, Status> {
    Ok(user
        .client
        .scheduler()
        .retry_run(request)
        .await?
        .into_inner()
        .run
        .unwrap())
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Status>, reason: Reason) -> Status {
    let status = result.unwrap_err();
    assert_eq!(reason_of(&status), Some(reason), "{status:?}");
    status
}

async fn keys_of(user: &User, run_id: &str) -> BTreeSet<String> {
    user.tasks(run_id)
        .await
        .unwrap()
        .into_iter()
        .map(|task| task.asset_key)
        .collect()
}

fn keys(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn f32_a_repeated_request_id_returns_the_stored_run() {
    let running = Running::shared().await;
    let user = running.user();
    user.deploy(chain(2)).await.unwrap();
    let first = trigger(&user, trigger_request(&user, "call-1", "", "chain.*"))
        .await
        .unwrap();
    assert!(!first.existing);
    let run = first.run.unwrap();
    // A second plan would be one of another deployment.
    user.deploy(chain(3)).await.unwrap();
    let again = trigger(&user, trigger_request(&user, "call-1", "", "chain.*"))
        .await
        .unwrap();
    assert!(again.existing);
    assert_eq!(again.accepted_event_id, first.accepted_event_id);
    let stored = again.run.unwrap();
    assert_eq!(
        (
            stored.run_id,
            stored.plan_id,
            stored.deployment_id,
            stored.create_time,
            stored.tasks.unwrap().total
        ),
        (
            run.run_id,
            run.plan_id,
            run.deployment_id,
            run.create_time,
            2
        )
    );
    refused(
        trigger(&user, trigger_request(&user, "call-1", "", "chain/t0")).await,
        Reason::RequestIdReused,
    );
    refused(
        trigger(&user, trigger_request(&user, "call-1", "a-key", "chain.*")).await,
        Reason::RequestIdReused,
    );
    assert_eq!(user.runs().await.unwrap().len(), 1);
}

#[tokio::test]
async fn inv_12_a_run_key_is_one_run_and_its_policy_decides_about_repeats() {
    let running = Running::shared().await;
    let user = running.user();
    let _worker = user.start_worker(4);
    user.deploy(chain(2)).await.unwrap();
    let first = trigger(&user, trigger_request(&user, "1", "nightly", "chain.*"))
        .await
        .unwrap()
        .run
        .unwrap();
    let other = with_policy(
        RunKeyPolicy::Force,
        trigger_request(&user, "2", "nightly", "chain/t0"),
    );
    user.wait_for_end(&first.run_id).await.unwrap();

    let again = trigger(&user, trigger_request(&user, "3", "nightly", "chain.*"))
        .await
        .unwrap();
    assert_eq!(
        (again.existing, again.run.unwrap().run_id),
        (true, first.run_id.clone())
    );
    let rejected = with_policy(
        RunKeyPolicy::Reject,
        trigger_request(&user, "4", "nightly", "chain.*"),
    );
    refused(trigger(&user, rejected).await, Reason::RunKeyConflict);
    let kept = with_policy(
        RunKeyPolicy::RetryIfFailed,
        trigger_request(&user, "5", "nightly", "chain.*"),
    );
    assert!(trigger(&user, kept).await.unwrap().existing);
    // Two equal conflicts are recorded once.
    for id in ["6", "7"] {
        let status = refused(
            trigger(&user, trigger_request(&user, id, "nightly", "chain/t0")).await,
            Reason::RunKeyConflict,
        );
        let metadata = status.get_details_error_info().unwrap().metadata;
        assert_eq!(
            (metadata["fields"].as_str(), &metadata["run_id"]),
            ("selection", &first.run_id)
        );
    }
    let request = api::ListRunKeyConflictsRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        ..Default::default()
    };
    let listed = user
        .client
        .scheduler()
        .list_run_key_conflicts(request)
        .await
        .unwrap()
        .into_inner();
    let [conflict] = &listed.conflicts[..] else {
        panic!("{listed:?}")
    };
    assert_eq!(
        (conflict.run_key.as_str(), &conflict.run_id),
        ("nightly", &first.run_id)
    );
    assert_eq!(conflict.request_fingerprint, first.request_fingerprint);
    assert_eq!(conflict.fields[0].after_json, r#"["chain/t0"]"#);

    let forced = trigger(&user, other.clone()).await.unwrap().run.unwrap();
    assert_eq!(
        (
            forced.run_key.as_str(),
            forced.generation,
            &forced.retry_of,
            forced.tasks.unwrap().total
        ),
        ("nightly#2", 2, &first.run_id, 1)
    );
    user.wait_for_end(&forced.run_id).await.unwrap();
    // A repeat of the call starts no third run, and the key names the second run now.
    assert_eq!(
        trigger(&user, other).await.unwrap().run.unwrap().run_id,
        forced.run_id
    );
    let newest = trigger(&user, trigger_request(&user, "8", "nightly", "chain/t0"))
        .await
        .unwrap();
    assert_eq!(
        (newest.existing, newest.run.unwrap().run_id),
        (true, forced.run_id)
    );
    assert_eq!(user.runs().await.unwrap().len(), 2);
}

/// raw -> clean -> report, raw -> broken -> mail.
fn shop(broken: &str) -> api::Manifest {
    manifest(vec![
        asset("shop/raw", &[], ""),
        asset("shop/clean", &["shop/raw"], ""),
        asset("shop/broken", &["shop/raw"], broken),
        asset("shop/report", &["shop/clean"], ""),
        asset("shop/mail", &["shop/broken"], ""),
    ])
}

#[tokio::test]
async fn a_retry_runs_the_tasks_that_did_not_succeed() {
    let running = Running::shared().await;
    let user = running.user();
    let _worker = user.start_worker(4);
    user.deploy(shop(r#"{"do":"fail"}"#)).await.unwrap();
    let first = trigger(&user, trigger_request(&user, "1", "shop", "shop.*"))
        .await
        .unwrap()
        .run
        .unwrap();
    let failed = user.wait_for_end(&first.run_id).await.unwrap();
    assert_eq!(failed.state(), RunState::Failed);

    let same = retried(&user, retry(&user, "r1", &first.run_id, RetryScope::Failed))
        .await
        .unwrap();
    assert_eq!(
        (same.run_key.as_str(), &same.retry_of, &same.deployment_id),
        ("shop#2", &first.run_id, &first.deployment_id)
    );
    assert_eq!(
        keys_of(&user, &same.run_id).await,
        keys(&["shop/broken", "shop/mail"])
    );
    assert_eq!(
        user.wait_for_end(&same.run_id).await.unwrap().state(),
        RunState::Failed
    );
    let again = retried(&user, retry(&user, "r1", &first.run_id, RetryScope::Failed))
        .await
        .unwrap();
    assert_eq!(again.run_id, same.run_id);
    refused(
        retried(&user, retry(&user, "r1", &first.run_id, RetryScope::All)).await,
        Reason::RequestIdReused,
    );

    user.deploy(shop("")).await.unwrap();
    let current = api::RetryRunRequest {
        use_current_deployment: true,
        ..retry(&user, "r2", &same.run_id, RetryScope::Failed)
    };
    let fixed = retried(&user, current).await.unwrap();
    assert_eq!((fixed.generation, &fixed.retry_of), (3, &same.run_id));
    assert_ne!(fixed.deployment_id, first.deployment_id);
    assert_eq!(
        user.wait_for_end(&fixed.run_id).await.unwrap().state(),
        RunState::Succeeded
    );
    refused(
        retried(&user, retry(&user, "r3", &fixed.run_id, RetryScope::Failed)).await,
        Reason::InvalidState,
    );

    let tasks = user.tasks(&first.run_id).await.unwrap();
    let clean = tasks
        .iter()
        .find(|task| task.asset_key == "shop/clean")
        .unwrap()
        .task_id
        .clone();
    let from = |id: &str, task_id: String| api::RetryRunRequest {
        task_ids: vec![task_id],
        ..retry(&user, id, &first.run_id, RetryScope::FromTasks)
    };
    refused(
        retried(&user, from("r4", "task_unknown".to_owned())).await,
        Reason::TaskNotFound,
    );
    refused(
        retried(
            &user,
            retry(&user, "r5", &first.run_id, RetryScope::FromTasks),
        )
        .await,
        Reason::InvalidField,
    );
    let part = retried(&user, from("r6", clean)).await.unwrap();
    assert_eq!(
        keys_of(&user, &part.run_id).await,
        keys(&["shop/clean", "shop/report"])
    );
    user.wait_for_end(&part.run_id).await.unwrap();
    let whole = retried(&user, retry(&user, "r7", &first.run_id, RetryScope::All))
        .await
        .unwrap();
    assert_eq!(keys_of(&user, &whole.run_id).await.len(), 5);
    user.wait_for_end(&whole.run_id).await.unwrap();

    // Retries the failure of the first deployment with the current one.
    let failing = with_policy(
        RunKeyPolicy::RetryIfFailed,
        trigger_request(&user, "2", "shop", "shop.*"),
    );
    let last = trigger(&user, failing).await.unwrap().run.unwrap();
    assert_eq!((last.generation, &last.retry_of), (6, &whole.run_id));
    assert_eq!(
        keys_of(&user, &last.run_id).await,
        keys(&["shop/broken", "shop/mail"])
    );
    assert_eq!(
        user.wait_for_end(&last.run_id).await.unwrap().state(),
        RunState::Succeeded
    );
}

#[tokio::test]
async fn only_a_task_without_recent_heartbeats_can_be_cancelled_by_force() {
    let running = Running::shared().await;
    let user = running.user();
    let _worker = user.start_worker(4);
    let mut hanging = asset("slow/a", &[], r#"{"do":"hang"}"#);
    let heartbeat = Some(prost_types::Duration {
        seconds: 6,
        nanos: 0,
    });
    hanging.timeouts = Some(api::Timeouts {
        heartbeat,
        ..Default::default()
    });
    user.deploy(manifest(vec![hanging, asset("slow/b", &["slow/a"], "")]))
        .await
        .unwrap();
    let run = user.trigger(&["slow.*"]).await.unwrap();
    user.wait_for_tasks(&run.run_id, "the attempt to begin", |tasks| {
        tasks.active == 1
    })
    .await
    .unwrap();
    let tasks = user.tasks(&run.run_id).await.unwrap();
    let force = |task: &api::Task| api::ForceCancelTaskRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: run.run_id.clone(),
        task_id: task.task_id.clone(),
        ..Default::default()
    };
    let mut scheduler = user.client.scheduler();
    refused(
        scheduler.force_cancel_task(force(&tasks[0])).await,
        Reason::HeartbeatRecent,
    );
    refused(
        scheduler.force_cancel_task(force(&tasks[1])).await,
        Reason::InvalidState,
    );
    let ended = until("half of the heartbeat timeout to pass", async || {
        let result = scheduler.force_cancel_task(force(&tasks[0])).await;
        result
            .inspect_err(|status| {
                let reason = reason_of(status);
                assert_eq!(reason, Some(Reason::HeartbeatRecent), "{status:?}");
            })
            .ok()
    })
    .await
    .into_inner();
    assert_eq!(ended.task.unwrap().state(), TaskState::Cancelled);
    let again = scheduler
        .force_cancel_task(force(&tasks[0]))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(again.accepted_event_id, ended.accepted_event_id);
    assert_eq!(
        user.wait_for_end(&run.run_id).await.unwrap().state(),
        RunState::Cancelled
    );
}

#[tokio::test]
async fn any_scheduler_accepts_a_call_and_forwards_it_to_the_holder() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _second = second_scheduler(&running.mesh);
    wait_until_both_hold_shards(&running.mesh).await;
    user.deploy(chain(1)).await.unwrap();
    let mut runs = Vec::new();
    for n in 0..24 {
        let run = trigger(
            &user,
            trigger_request(&user, &format!("call-{n}"), "", "chain.*"),
        )
        .await
        .unwrap()
        .run
        .unwrap();
        assert_eq!(
            (run.state(), run.tasks.unwrap().total),
            (RunState::Running, 1)
        );
        assert_eq!(
            run,
            user.run(&run.run_id).await.unwrap(),
            "reads do not depend on the holder"
        );
        runs.push(run.run_id);
    }
    // With 24 random shards, it is practically certain that each scheduler holds one of them.
    for run_id in &runs {
        assert_eq!(user.pause(run_id).await.unwrap().state(), RunState::Paused);
        assert_eq!(user.resume(run_id).await.unwrap().version, 2);
    }
    let again = trigger(&user, trigger_request(&user, "call-7", "", "chain.*"))
        .await
        .unwrap();
    assert_eq!(
        (again.existing, again.run.unwrap().run_id),
        (true, runs[7].clone())
    );
    for run_id in &runs[..12] {
        assert_eq!(
            user.cancel(run_id).await.unwrap().state(),
            RunState::Cancelled
        );
    }

    let mut targets: Vec<mesh_pb::RunTarget> =
        runs.iter().map(|run_id| target(&user, run_id)).collect();
    targets.push(target(&user, "run_aaaaaaaaaaaaaaaaaaaaaaaaaa"));
    let request = mesh_pb::CancelRunsRequest {
        runs: targets,
        requested_by: None,
    };
    let results = backfill(&running.mesh)
        .cancel_runs(request)
        .await
        .unwrap()
        .into_inner()
        .results;
    let refusals: Vec<Reason> = results.iter().map(mesh_pb::AppliedEvent::refusal).collect();
    assert_eq!(refusals[..12], [Reason::InvalidState; 12]);
    assert_eq!(refusals[12..24], [Reason::Unspecified; 12]);
    assert_eq!(refusals[24], Reason::RunNotFound);
    assert!(
        results[12..24]
            .iter()
            .all(|result| result.acceptance() == v1::Acceptance::Folded),
        "{results:?}"
    );
    for run_id in &runs {
        assert_eq!(user.run(run_id).await.unwrap().state(), RunState::Cancelled);
    }
}

fn target(user: &User, run_id: &str) -> mesh_pb::RunTarget {
    mesh_pb::RunTarget {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: run_id.to_owned(),
    }
}

fn second_scheduler(mesh: &LocalMesh) -> Child {
    let listen = || format!("127.0.0.1:{}", free_port().unwrap());
    let mut command = Child::command(&binaries().join("servo-scheduler"));
    command.env("SERVO_CONFIG", mesh.config_path(Service::Scheduler));
    command
        .env("SERVO_SERVER__LISTEN", listen())
        .env("SERVO_SERVER__METRICS_LISTEN", listen());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Child::spawn("second scheduler", command).unwrap()
}

async fn wait_until_both_hold_shards(mesh: &LocalMesh) {
    let (url, password) = mesh.role_access();
    let config = DatabaseConfig::new(url.to_owned(), password.to_owned());
    let store = Store::connect(Service::Scheduler, &config).unwrap();
    let shards = Stream::Execution.shards().count();
    until_true("both schedulers to hold shards", async || {
        let leases = store.loops().holders(Stream::Execution).await.unwrap();
        let holders: BTreeSet<&str> = leases.iter().map(|lease| lease.holder.as_str()).collect();
        holders.len() == 2 && leases.len() == shards
    })
    .await;
}
