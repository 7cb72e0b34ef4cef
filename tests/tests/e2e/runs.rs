//! Runs that are asked for twice, repeated, ended by force, and passed on between schedulers.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use servo_client::api::{self, RetryScope, RunKeyPolicy, RunState, TaskState};
use servo_local::{Child, LocalMesh, TENANT, free_port};
use servo_mesh::error::{Reason, reason_of};
use servo_model::{Service, Stream};
use servo_proto::v1;
use servo_store::{DatabaseConfig, Store};
use servo_tests::manifest::{asset, chain, manifest};
use servo_tests::user::{User, WORKSPACE};
use tonic::Status;
use tonic_types::StatusExt;

use crate::support::{Running, backfill, binaries};

fn wish(request_id: &str, run_key: &str, selection: &str) -> api::TriggerRunRequest {
    api::TriggerRunRequest {
        tenant: TENANT.to_owned(),
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

fn under(policy: RunKeyPolicy, asked: api::TriggerRunRequest) -> api::TriggerRunRequest {
    api::TriggerRunRequest {
        run_key_policy: policy.into(),
        ..asked
    }
}

fn retry(request_id: &str, run_id: &str, scope: RetryScope) -> api::RetryRunRequest {
    api::RetryRunRequest {
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        request_id: request_id.to_owned(),
        run_id: run_id.to_owned(),
        scope: scope.into(),
        ..Default::default()
    }
}

async fn trigger(
    user: &User,
    asked: api::TriggerRunRequest,
) -> Result<api::TriggerRunResponse, Status> {
    Ok(user
        .client
        .scheduler()
        .trigger_run(asked)
        .await?
        .into_inner())
}

async fn retried(user: &User, asked: api::RetryRunRequest) -> Result<api::Run, Status> {
    Ok(user
        .client
        .scheduler()
        .retry_run(asked)
        .await?
        .into_inner()
        .run
        .unwrap())
}

fn refused<T: std::fmt::Debug>(answer: Result<T, Status>, reason: Reason) -> Status {
    let status = answer.unwrap_err();
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
async fn f32_a_repeated_call_gets_the_stored_run_and_starts_nothing() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    user.deploy(chain(2)).await.unwrap();
    let first = trigger(&user, wish("call-1", "", "chain.*")).await.unwrap();
    assert!(!first.existing);
    let run = first.run.unwrap();
    // Planned anew it would be another plan of another deployment.
    user.deploy(chain(3)).await.unwrap();
    let again = trigger(&user, wish("call-1", "", "chain.*")).await.unwrap();
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
        trigger(&user, wish("call-1", "", "chain/t0")).await,
        Reason::RequestIdReused,
    );
    refused(
        trigger(&user, wish("call-1", "a-key", "chain.*")).await,
        Reason::RequestIdReused,
    );
    assert_eq!(user.runs().await.unwrap().len(), 1);
}

#[tokio::test]
async fn inv_12_a_run_key_is_one_run_and_its_policy_decides_about_the_next() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(4);
    user.deploy(chain(2)).await.unwrap();
    let first = trigger(&user, wish("1", "nightly", "chain.*"))
        .await
        .unwrap()
        .run
        .unwrap();
    let other = under(RunKeyPolicy::Force, wish("2", "nightly", "chain/t0"));
    user.ended(&first.run_id).await.unwrap();

    let again = trigger(&user, wish("3", "nightly", "chain.*"))
        .await
        .unwrap();
    assert_eq!(
        (again.existing, again.run.unwrap().run_id),
        (true, first.run_id.clone())
    );
    let rejected = under(RunKeyPolicy::Reject, wish("4", "nightly", "chain.*"));
    refused(trigger(&user, rejected).await, Reason::RunKeyConflict);
    let kept = under(RunKeyPolicy::RetryIfFailed, wish("5", "nightly", "chain.*"));
    assert!(trigger(&user, kept).await.unwrap().existing);
    // Twice, and on record once.
    for id in ["6", "7"] {
        let status = refused(
            trigger(&user, wish(id, "nightly", "chain/t0")).await,
            Reason::RunKeyConflict,
        );
        let told = status.get_details_error_info().unwrap().metadata;
        assert_eq!(
            (told["fields"].as_str(), &told["run_id"]),
            ("selection", &first.run_id)
        );
    }
    let asked = api::ListRunKeyConflictsRequest {
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        ..Default::default()
    };
    let listed = user
        .client
        .scheduler()
        .list_run_key_conflicts(asked)
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
    user.ended(&forced.run_id).await.unwrap();
    // The same call once more is no third run; the key stands for the second now.
    assert_eq!(
        trigger(&user, other).await.unwrap().run.unwrap().run_id,
        forced.run_id
    );
    let newest = trigger(&user, wish("8", "nightly", "chain/t0"))
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
async fn a_retry_runs_what_did_not_succeed_and_keeps_the_rest() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(4);
    user.deploy(shop(r#"{"do":"fail"}"#)).await.unwrap();
    let first = trigger(&user, wish("1", "shop", "shop.*"))
        .await
        .unwrap()
        .run
        .unwrap();
    let failed = user.ended(&first.run_id).await.unwrap();
    assert_eq!(failed.state(), RunState::Failed);

    let same = retried(&user, retry("r1", &first.run_id, RetryScope::Failed))
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
        user.ended(&same.run_id).await.unwrap().state(),
        RunState::Failed
    );
    let again = retried(&user, retry("r1", &first.run_id, RetryScope::Failed))
        .await
        .unwrap();
    assert_eq!(again.run_id, same.run_id);
    refused(
        retried(&user, retry("r1", &first.run_id, RetryScope::All)).await,
        Reason::RequestIdReused,
    );

    user.deploy(shop("")).await.unwrap();
    let current = api::RetryRunRequest {
        use_current_deployment: true,
        ..retry("r2", &same.run_id, RetryScope::Failed)
    };
    let mended = retried(&user, current).await.unwrap();
    assert_eq!((mended.generation, &mended.retry_of), (3, &same.run_id));
    assert_ne!(mended.deployment_id, first.deployment_id);
    assert_eq!(
        user.ended(&mended.run_id).await.unwrap().state(),
        RunState::Succeeded
    );
    refused(
        retried(&user, retry("r3", &mended.run_id, RetryScope::Failed)).await,
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
        ..retry(id, &first.run_id, RetryScope::FromTasks)
    };
    refused(
        retried(&user, from("r4", "task_unknown".to_owned())).await,
        Reason::TaskNotFound,
    );
    refused(
        retried(&user, retry("r5", &first.run_id, RetryScope::FromTasks)).await,
        Reason::InvalidField,
    );
    let part = retried(&user, from("r6", clean)).await.unwrap();
    assert_eq!(
        keys_of(&user, &part.run_id).await,
        keys(&["shop/clean", "shop/report"])
    );
    user.ended(&part.run_id).await.unwrap();
    let whole = retried(&user, retry("r7", &first.run_id, RetryScope::All))
        .await
        .unwrap();
    assert_eq!(keys_of(&user, &whole.run_id).await.len(), 5);
    user.ended(&whole.run_id).await.unwrap();

    // The first deployment's failure under the key, mended by the one that is current.
    let failing = under(RunKeyPolicy::RetryIfFailed, wish("2", "shop", "shop.*"));
    let last = trigger(&user, failing).await.unwrap().run.unwrap();
    assert_eq!((last.generation, &last.retry_of), (6, &whole.run_id));
    assert_eq!(
        keys_of(&user, &last.run_id).await,
        keys(&["shop/broken", "shop/mail"])
    );
    assert_eq!(
        user.ended(&last.run_id).await.unwrap().state(),
        RunState::Succeeded
    );
}

#[tokio::test]
async fn only_a_task_that_no_longer_beats_is_ended_by_force() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(4);
    let mut hanging = asset("slow/a", &[], r#"{"do":"hang"}"#);
    let heartbeat = Some(prost_types::Duration {
        seconds: 10,
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
    user.until(&run.run_id, |tasks| tasks.active == 1)
        .await
        .unwrap();
    let tasks = user.tasks(&run.run_id).await.unwrap();
    let force = |task: &api::Task| api::ForceCancelTaskRequest {
        tenant: TENANT.to_owned(),
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
    let ended = loop {
        match scheduler.force_cancel_task(force(&tasks[0])).await {
            Ok(ended) => break ended.into_inner(),
            Err(status) => assert_eq!(
                reason_of(&status),
                Some(Reason::HeartbeatRecent),
                "{status:?}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(ended.task.unwrap().state(), TaskState::Cancelled);
    let again = scheduler
        .force_cancel_task(force(&tasks[0]))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(again.accepted_event_id, ended.accepted_event_id);
    assert_eq!(
        user.ended(&run.run_id).await.unwrap().state(),
        RunState::Cancelled
    );
}

#[tokio::test]
async fn any_scheduler_takes_a_call_and_the_holder_of_the_shard_follows_it() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _second = second_scheduler(&running.mesh);
    until_both_hold(&running.mesh).await;
    user.deploy(chain(1)).await.unwrap();
    let mut runs = Vec::new();
    for n in 0..24 {
        let run = trigger(&user, wish(&format!("call-{n}"), "", "chain.*"))
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
            "whoever holds the run, it is answered as it stands"
        );
        runs.push(run.run_id);
    }
    // With 24 of 64 shards drawn, that none belongs to the other one is out of the question.
    for run_id in &runs {
        assert_eq!(user.pause(run_id).await.unwrap().state(), RunState::Paused);
        assert_eq!(user.resume(run_id).await.unwrap().version, 2);
    }
    let again = trigger(&user, wish("call-7", "", "chain.*")).await.unwrap();
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

    let mut targets: Vec<v1::RunTarget> = runs.iter().map(|run_id| target(run_id)).collect();
    targets.push(target("run_aaaaaaaaaaaaaaaaaaaaaaaaaa"));
    let asked = v1::CancelRunsRequest {
        runs: targets,
        requested_by: None,
    };
    let results = backfill(&running.mesh)
        .cancel_runs(asked)
        .await
        .unwrap()
        .into_inner()
        .results;
    let refusals: Vec<Reason> = results.iter().map(v1::AppliedEvent::refusal).collect();
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

fn target(run_id: &str) -> v1::RunTarget {
    v1::RunTarget {
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: run_id.to_owned(),
    }
}

/// What a service of the mesh is configured with.
fn config(mesh: &LocalMesh, service: Service) -> std::path::PathBuf {
    let logs = mesh.log_path(service);
    logs.parent()
        .and_then(Path::parent)
        .unwrap()
        .join("config")
        .join(format!("{service}.toml"))
}

fn second_scheduler(mesh: &LocalMesh) -> Child {
    let listen = || format!("127.0.0.1:{}", free_port().unwrap());
    let mut command = Child::command(&binaries().join("servo-scheduler"));
    command.env("SERVO_CONFIG", config(mesh, Service::Scheduler));
    command
        .env("SERVO_SERVER__LISTEN", listen())
        .env("SERVO_SERVER__METRICS_LISTEN", listen());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Child::spawn("second scheduler", command).unwrap()
}

async fn until_both_hold(mesh: &LocalMesh) {
    let text = std::fs::read_to_string(config(mesh, Service::Scheduler)).unwrap();
    let value = |key: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{key} = ")));
        line.unwrap().trim_matches('"').to_owned()
    };
    let store = Store::connect(
        Service::Scheduler,
        &DatabaseConfig::new(value("url"), value("password")),
    )
    .unwrap();
    loop {
        let leases = store.loops().holders(Stream::Execution).await.unwrap();
        let holders: BTreeSet<&str> = leases.iter().map(|lease| lease.holder.as_str()).collect();
        if holders.len() == 2
            && leases.len() == usize::from(Stream::Execution.shards().unsigned_abs())
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
