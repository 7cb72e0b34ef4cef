//! What users see of runs while they go on: Explain, WatchRun, filters, events, reads that wait.

use std::time::{Duration, Instant};

use servo_client::api::{self, RunState, TaskState, WaitReason};
use servo_local::{LocalMesh, TENANT};
use servo_model::{RunId, Service, Stream};
use servo_tests::manifest::{asset, manifest};
use servo_tests::user::{User, WORKSPACE};
use sqlx::{Connection, PgConnection};
use tokio_stream::StreamExt;

use crate::instances::until_it_holds;
use crate::support::Running;

const NAP: &str = r#"{"do":"sleep","ms":60000}"#;

async fn explain(user: &User, run_id: &str, task_id: &str) -> Vec<api::Explanation> {
    let asked = api::ExplainRequest {
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: run_id.to_owned(),
        task_id: task_id.to_owned(),
        page_size: 100,
        ..Default::default()
    };
    user.client
        .scheduler()
        .explain(asked)
        .await
        .unwrap()
        .into_inner()
        .explanations
}

/// Each task's reason by its asset, the run's own under an empty name.
fn reasons(explanations: &[api::Explanation]) -> Vec<(&str, WaitReason)> {
    let asset = |key: &str| key.len().min(key.find(':').unwrap_or(0));
    explanations
        .iter()
        .map(|e| (&e.task_key[..asset(&e.task_key)], e.reason()))
        .collect()
}

#[tokio::test]
async fn whoever_waits_is_told_why() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let mut picky = asset("why/picky", &[], "");
    picky.code.as_mut().unwrap().target = Some(api::code_ref::Target::Handler(api::Handler {
        name: "nobody-has-this".to_owned(),
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
        asset("why/a", &[], NAP),
        asset("why/b", &["why/a"], ""),
        picky,
        flaky,
        asset("why/z", &[], NAP),
    ];
    user.deploy(manifest(assets)).await.unwrap();
    let run = user.trigger(&["why.*"]).await.unwrap();
    // The dispatcher hears of ready tasks a moment after the run began.
    while !reasons(&explain(&user, &run.run_id, "").await)
        .contains(&("why/a", WaitReason::NoWorker))
    {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }

    // Two slots for three tasks: the flaky one goes through first or last, the sleepers stay.
    let _worker = user.work(2);
    let told = loop {
        let told = explain(&user, &run.run_id, "").await;
        let seen = reasons(&told);
        let both_sleep = ["why/a", "why/z"]
            .iter()
            .all(|key| seen.contains(&(key, WaitReason::Running)));
        let retried = seen.contains(&("why/flaky", WaitReason::RetryDelay));
        if both_sleep && (retried || seen.contains(&("why/flaky", WaitReason::FairShare))) {
            break told;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!(
        (told[0].task_key.as_str(), told[0].reason()),
        ("", WaitReason::Running)
    );
    let of = |key: &str| told.iter().find(|e| e.task_key.starts_with(key)).unwrap();
    assert_eq!(of("why/b").reason(), WaitReason::Upstream);
    assert_eq!(
        of("why/b").message,
        "waits for upstream why/a:materialize, which is RUNNING"
    );
    assert_eq!(of("why/b").blockers.len(), 1);
    assert_eq!(of("why/picky").reason(), WaitReason::NoCapableWorker);
    assert!(
        of("why/picky").message.contains("nobody-has-this"),
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
    user.ended(&run.run_id).await.unwrap();
    let ended = explain(&user, &run.run_id, "").await;
    assert_eq!(reasons(&ended), [("", WaitReason::Ended)]);
}

fn watch(run_id: &str, resume_token: &str) -> api::WatchRunRequest {
    api::WatchRunRequest {
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: run_id.to_owned(),
        resume_token: resume_token.to_owned(),
        include_events: true,
    }
}

#[tokio::test]
async fn a_run_is_watched_to_its_end_and_again_from_the_middle() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
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
        .watch_run(watch(&run.run_id, ""))
        .await
        .unwrap()
        .into_inner();
    let first = stream.next().await.unwrap().unwrap();
    assert_eq!(first.run.as_ref().unwrap().state(), RunState::Running);
    assert_eq!(
        first.tasks.len(),
        2,
        "a watch begins with everything as it stands"
    );
    let _worker = user.work(2);
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

    // From the token of the first message all that followed comes again, and nothing else.
    let again = user
        .client
        .scheduler()
        .watch_run(watch(&run.run_id, &first.resume_token))
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
        .watch_run(watch(&run.run_id, "AAAA"))
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

/// A run of which the second scheduler holds the shard. Users come to the first.
async fn run_of_the_second(mesh: &LocalMesh, user: &User) -> api::Run {
    for scheduler in [scheduler(0), scheduler(1)] {
        until_it_holds(mesh, scheduler, false).await;
    }
    let second = mesh.address(scheduler(1));
    loop {
        let run = user.trigger(&["watch.*"]).await.unwrap();
        let shard = run.run_id.parse::<RunId>().unwrap().shard();
        if holder(mesh, shard).await == second {
            return run;
        }
    }
}

async fn holder(mesh: &LocalMesh, shard: i16) -> String {
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
async fn chaos_who_watches_where_the_run_is_not_folded_sees_it_as_soon() {
    let mut running = Running::start_with(|options| options.instances(Service::Scheduler, 2)).await;
    let user = User::of(&running.mesh).unwrap();
    user.deploy(manifest(vec![asset("watch/a", &[], "")]))
        .await
        .unwrap();
    let run = run_of_the_second(&running.mesh, &user).await;
    let mut stream = user
        .client
        .scheduler()
        .watch_run(watch(&run.run_id, ""))
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
    // Who looks once a second finds half of them only after half of one.
    assert!(
        !servo_tests::full() || taken[taken.len() / 2] < Duration::from_millis(300),
        "{taken:?}"
    );

    // With the holder away it looks by itself.
    running.mesh.kill_9(scheduler(1)).unwrap();
    until_it_holds(&running.mesh, scheduler(0), true).await;
    user.pause(&run.run_id).await.unwrap();
    seen(RunState::Paused).await;
}

async fn list(user: &User, filter: &str) -> Result<Vec<String>, tonic::Status> {
    let asked = api::ListRunsRequest {
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        filter: filter.to_owned(),
        ..Default::default()
    };
    let page = user.client.scheduler().list_runs(asked).await?.into_inner();
    Ok(page.runs.into_iter().map(|run| run.run_id).collect())
}

#[tokio::test]
async fn lists_are_filtered_events_are_listed_and_reads_wait() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.work(2);
    user.deploy(manifest(vec![
        asset("list/ok", &[], ""),
        asset("list/bad", &[], r#"{"do":"fail"}"#),
    ]))
    .await
    .unwrap();
    let good = user.trigger(&["list/ok"]).await.unwrap();
    let bad = user.trigger(&["list.*"]).await.unwrap();
    for run in [&good, &bad] {
        user.ended(&run.run_id).await.unwrap();
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

    let asked = |filter: &str| api::ListTasksRequest {
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: bad.run_id.clone(),
        filter: filter.to_owned(),
        ..Default::default()
    };
    let failed = user
        .client
        .scheduler()
        .list_tasks(asked("state = FAILED"))
        .await
        .unwrap()
        .into_inner();
    let keys: Vec<&str> = failed
        .tasks
        .iter()
        .map(|task| task.asset_key.as_str())
        .collect();
    assert_eq!(keys, ["list/bad"]);

    let asked = api::ListEventsRequest {
        tenant: TENANT.to_owned(),
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
            ..asked.clone()
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
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: good.run_id.clone(),
        wait_for_event_id: event_id.to_owned(),
        ..Default::default()
    };
    let again = api::TriggerRunRequest {
        tenant: TENANT.to_owned(),
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
    assert!(nonsense.message().contains("is no event id"), "{nonsense}");
}
