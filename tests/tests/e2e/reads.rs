//! Reads of runs in progress: Explain, WatchRun, filters, events, and reads that wait for an event.

use std::time::{Duration, Instant};

use servo_client::api::{self, RunState, TaskState, WaitReason};
use servo_local::LocalMesh;
use servo_local::wait::{until, until_true};
use servo_model::{RunId, Service, ShardId, Stream};
use servo_tests::manifest::{asset, manifest};
use servo_tests::user::{User, WORKSPACE};
use sqlx::{Connection, PgConnection};
use tokio_stream::StreamExt;

use crate::instances::wait_for_shards;
use crate::support::Running;

const SLEEP: &str = r#"{"do":"sleep","ms":60000}"#;

async fn explain(user: &User, run_id: &str, task_id: &str) -> Vec<api::Explanation> {
    let request = api::ExplainRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: run_id.to_owned(),
        task_id: task_id.to_owned(),
        page_size: 100,
        ..Default::default()
    };
    user.client
        .scheduler()
        .explain(request)
        .await
        .unwrap()
        .into_inner()
        .explanations
}

/// The reason of each task by its asset, and that of the run under an empty name.
fn reasons(explanations: &[api::Explanation]) -> Vec<(&str, WaitReason)> {
    let asset = |key: &str| key.len().min(key.find(':').unwrap_or(0));
    explanations
        .iter()
        .map(|e| (&e.task_key[..asset(&e.task_key)], e.reason()))
        .collect()
}

#[tokio::test]
async fn explain_gives_the_reason_of_every_waiting_task() {
    let running = Running::shared().await;
    let user = running.user();
    let mut picky = asset("why/picky", &[], "");
    picky.code.as_mut().unwrap().target = Some(api::code_ref::Target::Handler(api::Handler {
        name: "unknown-handler".to_owned(),
        ..Default::default()
    }));
    let mut flaky = asset("why/flaky", &[], r#"{"do":"fail","category":"TRANSIENT"}"#);
    flaky.retry = Some(api::RetryPolicy {
        initial_delay: Some(prost_types::Duration {
            seconds: 3_600,
            nanos: 0,
        }),
        max_delay: Some(prost_types::Duration {
            seconds: 3_600,
            nanos: 0,
        }),
        ..Default::default()
    });
    let assets = vec![
        asset("why/a", &[], SLEEP),
        asset("why/b", &["why/a"], ""),
        picky,
        flaky,
        asset("why/z", &[], SLEEP),
    ];
    user.deploy(manifest(assets)).await.unwrap();
    let run = user.trigger(&["why.*"]).await.unwrap();
    // The dispatcher receives ready tasks a moment after the run began.
    until_true("the dispatcher to find no worker", async || {
        let explanations = explain(&user, &run.run_id, "").await;
        reasons(&explanations).contains(&("why/a", WaitReason::NoWorker))
    })
    .await;

    // Two slots for three tasks: the flaky one runs first or last, and the sleepers keep their
    // slots.
    let _worker = user.start_worker(2);
    let explanations = until("the worker to be full", async || {
        let explanations = explain(&user, &run.run_id, "").await;
        let seen = reasons(&explanations);
        let both_sleep = ["why/a", "why/z"]
            .iter()
            .all(|key| seen.contains(&(key, WaitReason::Running)));
        let retried = seen.contains(&("why/flaky", WaitReason::RetryDelay));
        let waits = seen.contains(&("why/flaky", WaitReason::FairShare));
        (both_sleep && (retried || waits)).then_some(explanations)
    })
    .await;
    assert_eq!(
        (explanations[0].task_key.as_str(), explanations[0].reason()),
        ("", WaitReason::Running)
    );
    let of = |key: &str| {
        explanations
            .iter()
            .find(|e| e.task_key.starts_with(key))
            .unwrap()
    };
    assert_eq!(of("why/b").reason(), WaitReason::Upstream);
    assert_eq!(
        of("why/b").message,
        "waits for upstream why/a:materialize, which is RUNNING"
    );
    assert_eq!(of("why/b").blockers.len(), 1);
    assert_eq!(of("why/picky").reason(), WaitReason::NoCapableWorker);
    assert!(
        of("why/picky").message.contains("unknown-handler"),
        "{}",
        of("why/picky").message
    );
    let alone = explain(&user, &run.run_id, &of("why/b").task_id).await;
    assert_eq!(reasons(&alone), [("why/b", WaitReason::Upstream)]);

    user.pause(&run.run_id).await.unwrap();
    let paused = explain(&user, &run.run_id, "").await;
    assert_eq!(paused[0].reason(), WaitReason::RunPaused);
    assert!(
        reasons(&paused).contains(&("why/picky", WaitReason::RunPaused)),
        "{paused:#?}"
    );
    user.cancel(&run.run_id).await.unwrap();
    user.wait_for_end(&run.run_id).await.unwrap();
    let ended = explain(&user, &run.run_id, "").await;
    assert_eq!(reasons(&ended), [("", WaitReason::Ended)]);
}

fn watch(user: &User, run_id: &str, resume_token: &str) -> api::WatchRunRequest {
    api::WatchRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: run_id.to_owned(),
        resume_token: resume_token.to_owned(),
        include_events: true,
    }
}

#[tokio::test]
async fn a_watch_continues_to_the_end_of_the_run_and_resumes_from_a_token() {
    let running = Running::shared().await;
    let user = running.user();
    user.deploy(manifest(vec![
        asset("watch/a", &[], ""),
        asset("watch/b", &["watch/a"], ""),
    ]))
    .await
    .unwrap();
    let run = user.trigger(&["watch.*"]).await.unwrap();
    let mut stream = user
        .client
        .scheduler()
        .watch_run(watch(&user, &run.run_id, ""))
        .await
        .unwrap()
        .into_inner();
    let first = stream.next().await.unwrap().unwrap();
    assert_eq!(first.run.as_ref().unwrap().state(), RunState::Running);
    assert_eq!(first.tasks.len(), 2, "a watch begins with all tasks");
    let _worker = user.start_worker(2);
    let mut seen = vec![first.clone()];
    while let Some(message) = stream.next().await {
        seen.push(message.unwrap());
    }
    assert_eq!(
        seen.last().unwrap().run.as_ref().unwrap().state(),
        RunState::Succeeded
    );
    let last = |key: &str| {
        let tasks = seen.iter().rev().flat_map(|message| &message.tasks);
        tasks
            .into_iter()
            .find(|task| task.asset_key == key)
            .unwrap()
            .state()
    };
    assert_eq!(
        (last("watch/a"), last("watch/b")),
        (TaskState::Succeeded, TaskState::Succeeded)
    );
    let events = |messages: &[api::WatchRunResponse]| -> Vec<String> {
        messages
            .iter()
            .flat_map(|message| &message.events)
            .map(|event| event.event_id.clone())
            .collect()
    };

    // A watch from the token of the first message repeats exactly the events after it.
    let again = user
        .client
        .scheduler()
        .watch_run(watch(&user, &run.run_id, &first.resume_token))
        .await
        .unwrap();
    let again: Vec<_> = again
        .into_inner()
        .collect::<Result<Vec<_>, _>>()
        .await
        .unwrap();
    assert_eq!(events(&again), events(&seen[1..]));
    let wrong = user
        .client
        .scheduler()
        .watch_run(watch(&user, &run.run_id, "AAAA"))
        .await
        .unwrap_err();
    assert_eq!(wrong.code(), tonic::Code::InvalidArgument, "{wrong}");
}

fn scheduler(number: usize) -> servo_local::Instance {
    servo_local::Instance {
        service: Service::Scheduler,
        number,
    }
}

/// Triggers a run whose shard the second scheduler holds; users call the first.
async fn run_on_the_second(mesh: &LocalMesh, user: &User) -> api::Run {
    for scheduler in [scheduler(0), scheduler(1)] {
        wait_for_shards(mesh, scheduler, false).await;
    }
    let second = mesh.address(scheduler(1));
    until("a run on a shard of the second scheduler", async || {
        let run = user.trigger(&["watch.*"]).await.unwrap();
        let shard = run.run_id.parse::<RunId>().unwrap().shard();
        (holder(mesh, shard).await == second).then_some(run)
    })
    .await
}

async fn holder(mesh: &LocalMesh, shard: ShardId) -> String {
    let sql = "SELECT address FROM ledger.shards WHERE stream = $1 AND shard = $2";
    let mut connection = PgConnection::connect(mesh.admin_url()).await.unwrap();
    let stream = Stream::Execution.code();
    sqlx::query_scalar(sql)
        .bind(stream)
        .bind(shard)
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn chaos_a_watch_at_another_instance_than_the_holder_is_as_fast() {
    let mut running = Running::start_with(|options| options.instances(Service::Scheduler, 2)).await;
    let user = User::of(&running.mesh).unwrap();
    user.deploy(manifest(vec![asset("watch/a", &[], "")]))
        .await
        .unwrap();
    let run = run_on_the_second(&running.mesh, &user).await;
    let mut stream = user
        .client
        .scheduler()
        .watch_run(watch(&user, &run.run_id, ""))
        .await
        .unwrap()
        .into_inner();
    let mut seen = async |state: RunState| {
        let began = Instant::now();
        while stream.next().await.unwrap().unwrap().run.unwrap().state() != state {}
        began.elapsed()
    };
    seen(RunState::Running).await;
    let mut taken = Vec::new();
    for _ in 0..5 {
        user.pause(&run.run_id).await.unwrap();
        taken.push(seen(RunState::Paused).await);
        user.resume(&run.run_id).await.unwrap();
        taken.push(seen(RunState::Running).await);
    }
    taken.sort_unstable();
    println!("changes were seen after {taken:?}");
    // Polling once per second would have a median of half a second.
    assert!(
        !servo_tests::full() || taken[taken.len() / 2] < Duration::from_millis(300),
        "{taken:?}"
    );

    // Without the holder the instance polls.
    running.mesh.kill_9(scheduler(1)).unwrap();
    wait_for_shards(&running.mesh, scheduler(0), true).await;
    user.pause(&run.run_id).await.unwrap();
    seen(RunState::Paused).await;
}

async fn list(user: &User, filter: &str) -> Result<Vec<String>, tonic::Status> {
    let request = api::ListRunsRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        filter: filter.to_owned(),
        ..Default::default()
    };
    let page = user
        .client
        .scheduler()
        .list_runs(request)
        .await?
        .into_inner();
    Ok(page.runs.into_iter().map(|run| run.run_id).collect())
}

#[tokio::test]
async fn lists_are_filtered_events_are_listed_and_reads_wait_for_an_event() {
    let running = Running::shared().await;
    let user = running.user();
    let _worker = user.start_worker(2);
    user.deploy(manifest(vec![
        asset("list/ok", &[], ""),
        asset("list/bad", &[], r#"{"do":"fail"}"#),
    ]))
    .await
    .unwrap();
    let good = user.trigger(&["list/ok"]).await.unwrap();
    let bad = user.trigger(&["list.*"]).await.unwrap();
    for run in [&good, &bad] {
        user.wait_for_end(&run.run_id).await.unwrap();
    }
    assert_eq!(
        list(&user, "state = SUCCEEDED").await.unwrap(),
        [good.run_id.as_str()]
    );
    assert_eq!(
        list(&user, "state != SUCCEEDED AND trigger = manual")
            .await
            .unwrap(),
        [bad.run_id.as_str()]
    );
    let refused = list(&user, "colour = red").await.unwrap_err();
    assert!(
        refused.message().contains("`colour` cannot be filtered by"),
        "{refused}"
    );

    let request = |filter: &str| api::ListTasksRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: bad.run_id.clone(),
        filter: filter.to_owned(),
        ..Default::default()
    };
    let failed = user
        .client
        .scheduler()
        .list_tasks(request("state = FAILED"))
        .await
        .unwrap()
        .into_inner();
    let keys: Vec<&str> = failed
        .tasks
        .iter()
        .map(|task| task.asset_key.as_str())
        .collect();
    assert_eq!(keys, ["list/bad"]);

    let request = api::ListEventsRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        filter: format!("correlation_id = {}", good.run_id),
        page_size: 2,
        ..Default::default()
    };
    let mut kinds = Vec::new();
    let mut page_token = String::new();
    loop {
        let page = api::ListEventsRequest {
            page_token,
            ..request.clone()
        };
        let page = user
            .client
            .scheduler()
            .list_events(page)
            .await
            .unwrap()
            .into_inner();
        assert!(
            page.events
                .iter()
                .all(|event| event.correlation_id == good.run_id)
        );
        kinds.extend(page.events.into_iter().map(|event| event.r#type));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(
        kinds[..3],
        ["RunRequested", "PlanCreated", "DispatchRequested"]
    );
    assert_eq!(kinds.last().map(String::as_str), Some("TaskFinished"));

    let wait = |event_id: &str| api::GetRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: good.run_id.clone(),
        wait_for_event_id: event_id.to_owned(),
        ..Default::default()
    };
    let again = api::TriggerRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        spec: Some(api::RunSpec {
            selection: vec!["list/ok".to_owned()],
            ..Default::default()
        }),
        ..Default::default()
    };
    let again = user
        .client
        .scheduler()
        .trigger_run(again)
        .await
        .unwrap()
        .into_inner();
    let accepted = again.accepted_event_id;
    user.client
        .scheduler()
        .get_run(wait(&accepted))
        .await
        .unwrap();
    let nonsense = user
        .client
        .scheduler()
        .get_run(wait("nonsense"))
        .await
        .unwrap_err();
    assert!(
        nonsense.message().contains("is not an event id"),
        "{nonsense}"
    );
}
