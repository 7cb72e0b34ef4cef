//! Limits on runs, as a tenant meets them.

use servo_client::api;
use servo_client::api::WaitReason;
use servo_local::{LivenessPace, MeshOptions};
use servo_model::Service;
use servo_tests::aftermath;
use servo_tests::manifest::{asset, manifest};
use servo_tests::user::{User, WORKSPACE};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::support::{Running, binaries};

async fn running(wish: impl FnOnce(MeshOptions) -> MeshOptions) -> (Running, User) {
    let running = Running::start_with(|options| wish(options.pace(LivenessPace::QUICK))).await;
    let user = User::of(&running.mesh).unwrap();
    let quick = asset("limit/quick", &[], r#"{"do":"sleep","ms":30}"#);
    let slow = asset("limit/slow", &[], r#"{"do":"sleep","ms":60000}"#);
    user.deploy(manifest(vec![quick, slow])).await.unwrap();
    (running, user)
}

fn selecting(selection: &str) -> api::RunSpec {
    api::RunSpec {
        selection: vec![selection.to_owned()],
        ..Default::default()
    }
}

/// Asks until it is refused in these words: a limit holds within a second.
async fn refused(user: &User, selection: &str, words: &str) -> Status {
    loop {
        match user.ask_for_run(selecting(selection), "").await {
            Err(status) if status.message().contains(words) => return status,
            Err(status) if status.code() != Code::ResourceExhausted => panic!("{status:?}"),
            _ => {}
        }
    }
}

/// The same of a dry run.
async fn not_planned(user: &User, selection: &str, words: &str) -> Status {
    let asked = api::PlanRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        spec: Some(selecting(selection)),
        ..Default::default()
    };
    loop {
        match user.client.planner().plan_run(asked.clone()).await {
            Err(status) if status.message().contains(words) => return status,
            Err(status) => panic!("{status:?}"),
            Ok(_) => {}
        }
    }
}

/// The most that were under way together, by when they started and ended.
fn most_at_once(runs: &[api::Run]) -> i32 {
    let time = |time: &Option<prost_types::Timestamp>| {
        time.map(|time| (time.seconds, time.nanos)).unwrap()
    };
    let mut steps: Vec<_> = runs
        .iter()
        .flat_map(|run| [(time(&run.start_time), 1), (time(&run.end_time), -1)])
        .collect();
    steps.sort();
    let under_way = steps.iter().scan(0, |under_way, (_, step)| {
        *under_way += step;
        Some(*under_way)
    });
    under_way.max().unwrap()
}

#[tokio::test]
async fn f19_runs_above_the_limit_wait_their_turn_and_all_of_them_end() {
    let (mut running, user) = running(|options| options.instances(Service::Scheduler, 2)).await;
    let _worker = user.work(32);
    let limits = |max| api::QuotaLimits {
        max_concurrent_runs: Some(max),
        ..Default::default()
    };
    user.limit(limits(0)).await.unwrap();
    // Once so many wait in a row, both instances know the limit.
    let mut waiting = Vec::new();
    while waiting.len() < 20 {
        let run = user.trigger(&["limit.quick"]).await.unwrap();
        match run.state() {
            api::RunState::Pending => waiting.push(run.run_id),
            _ => waiting.clear(),
        }
    }
    user.limit(limits(3)).await.unwrap();
    for _ in 0..30 {
        waiting.push(user.trigger(&["limit.quick"]).await.unwrap().run_id);
    }
    let mut runs = Vec::new();
    for id in &waiting {
        let run = user.ended(id).await.unwrap();
        assert_eq!(run.state(), api::RunState::Succeeded, "{run:?}");
        runs.push(run);
    }
    assert!(
        (1..=3).contains(&most_at_once(&runs)),
        "{} at once",
        most_at_once(&runs)
    );
    aftermath::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().unwrap();
}

#[tokio::test]
async fn a_run_that_waits_says_for_what_and_one_too_many_is_refused() {
    let (running, user) = running(|options| options).await;
    let _worker = user.work(4);
    let at_once = |runs, queued| api::QuotaLimits {
        max_concurrent_runs: Some(runs),
        max_queued_runs: Some(queued),
        ..Default::default()
    };
    user.limit(at_once(0, 0)).await.unwrap();
    refused(&user, "limit.quick", "max_queued_runs is 0").await;
    // What was accepted before the limit held must not be in the way.
    for run in user.runs().await.unwrap() {
        user.ended(&run.run_id).await.unwrap();
    }
    user.limit(at_once(1, 1)).await.unwrap();
    let holder = loop {
        if let Ok(run) = user.trigger(&["limit.slow"]).await {
            break run;
        }
    };
    let waiting = user.trigger(&["limit.quick"]).await.unwrap();
    assert_eq!(
        (holder.state(), waiting.state()),
        (api::RunState::Running, api::RunState::Pending)
    );
    let asked = api::ExplainRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: waiting.run_id.clone(),
        ..Default::default()
    };
    let told = user
        .client
        .scheduler()
        .explain(asked)
        .await
        .unwrap()
        .into_inner()
        .explanations
        .remove(0);
    assert_eq!(told.reason(), WaitReason::RunLimit);
    assert!(
        told.message
            .contains("max_concurrent_runs is 1: 1 runs are under way and 0 wait"),
        "{told:?}"
    );
    assert_eq!(told.blockers[0].id, holder.run_id);

    let status = refused(&user, "limit.quick", "max_queued_runs is 1").await;
    let quota = status.get_details_quota_failure().unwrap();
    assert_eq!(
        quota.violations[0].subject,
        format!("tenants/{}", user.tenant())
    );
    assert_eq!(quota.violations[0].description, status.message());
    user.cancel(&holder.run_id).await.unwrap();
    assert_eq!(
        user.ended(&waiting.run_id).await.unwrap().state(),
        api::RunState::Succeeded
    );

    user.limit(api::QuotaLimits {
        max_daily_runs: Some(2),
        ..Default::default()
    })
    .await
    .unwrap();
    refused(&user, "limit.quick", "max_daily_runs is 2").await;
    user.limit(api::QuotaLimits {
        max_tasks_per_run: Some(1),
        ..Default::default()
    })
    .await
    .unwrap();
    let words = "means 2 tasks, more than the 1 that max_tasks_per_run allows";
    let status = refused(&user, "limit.*", words).await;
    assert!(status.get_details_quota_failure().is_some(), "{status:?}");
    let status = not_planned(&user, "limit.*", words).await;
    assert!(status.get_details_quota_failure().is_some(), "{status:?}");
    running.mesh.stop().unwrap();
}
