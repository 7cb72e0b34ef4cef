//! Limits on runs, as a tenant sees them.

use servo_client::api;
use servo_client::api::WaitReason;
use servo_local::LivenessTimings;
use servo_local::wait::until;
use servo_model::Service;
use servo_tests::invariants;
use servo_tests::manifest::{asset, manifest};
use servo_tests::user::{User, WORKSPACE};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::support::{Running, binaries};

async fn deploy(user: &User) {
    let quick = asset("limit/quick", &[], r#"{"do":"sleep","ms":30}"#);
    let slow = asset("limit/slow", &[], r#"{"do":"sleep","ms":60000}"#);
    user.deploy(manifest(vec![quick, slow])).await.unwrap();
}

fn selecting(selection: &str) -> api::RunSpec {
    api::RunSpec {
        selection: vec![selection.to_owned()],
        ..Default::default()
    }
}

/// Triggers runs until one is refused with these words, because a new limit holds within a second.
async fn wait_for_refusal(user: &User, selection: &str, words: &str) -> Status {
    let what = format!("TriggerRun to be refused with `{words}`");
    until(&what, async || {
        match user.try_trigger(selecting(selection), "").await {
            Err(status) if status.message().contains(words) => Some(status),
            Err(status) if status.code() != Code::ResourceExhausted => panic!("{status:?}"),
            _ => None,
        }
    })
    .await
}

/// Calls PlanRun until it is refused with these words.
async fn wait_for_plan_refusal(user: &User, selection: &str, words: &str) -> Status {
    let request = api::PlanRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        spec: Some(selecting(selection)),
        ..Default::default()
    };
    let what = format!("PlanRun to be refused with `{words}`");
    until(&what, async || {
        match user.client.planner().plan_run(request.clone()).await {
            Err(status) if status.message().contains(words) => Some(status),
            Err(status) => panic!("{status:?}"),
            Ok(_) => None,
        }
    })
    .await
}

/// The largest number of runs in progress at the same time, by their start and end times.
fn peak(runs: &[api::Run]) -> i32 {
    let time = |time: &Option<prost_types::Timestamp>| {
        time.map(|time| (time.seconds, time.nanos)).unwrap()
    };
    let mut steps: Vec<_> = runs
        .iter()
        .flat_map(|run| [(time(&run.start_time), 1), (time(&run.end_time), -1)])
        .collect();
    steps.sort();
    let in_progress = steps.iter().scan(0, |in_progress, (_, step)| {
        *in_progress += step;
        Some(*in_progress)
    });
    in_progress.max().unwrap()
}

#[tokio::test]
async fn f19_runs_above_the_limit_wait_and_all_of_them_end() {
    let mut running = Running::start_with(|options| {
        options
            .instances(Service::Scheduler, 2)
            .timings(LivenessTimings::FAST)
    })
    .await;
    let user = User::of(&running.mesh).unwrap();
    deploy(&user).await;
    let _worker = user.start_worker(32);
    let limits = |max| api::QuotaLimits {
        max_concurrent_runs: Some(max),
        ..Default::default()
    };
    user.set_limits(limits(0)).await.unwrap();
    // When this many runs in a row had to wait, both instances know the limit.
    let mut waiting = Vec::new();
    while waiting.len() < 20 {
        let run = user.trigger(&["limit.quick"]).await.unwrap();
        match run.state() {
            api::RunState::Pending => waiting.push(run.run_id),
            _ => waiting.clear(),
        }
    }
    user.set_limits(limits(3)).await.unwrap();
    for _ in 0..30 {
        waiting.push(user.trigger(&["limit.quick"]).await.unwrap().run_id);
    }
    let mut runs = Vec::new();
    for id in &waiting {
        let run = user.wait_for_end(id).await.unwrap();
        assert_eq!(run.state(), api::RunState::Succeeded, "{run:?}");
        runs.push(run);
    }
    assert!((1..=3).contains(&peak(&runs)), "{} at once", peak(&runs));
    invariants::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().await.unwrap();
}

#[tokio::test]
async fn a_waiting_run_is_explained_and_one_above_the_queue_limit_is_refused() {
    let running = Running::shared().await;
    let user = running.user();
    deploy(&user).await;
    let _worker = user.start_worker(4);
    let at_once = |runs, queued| api::QuotaLimits {
        max_concurrent_runs: Some(runs),
        max_queued_runs: Some(queued),
        ..Default::default()
    };
    user.set_limits(at_once(0, 0)).await.unwrap();
    wait_for_refusal(&user, "limit.quick", "max_queued_runs is 0").await;
    // Runs that were accepted before the limit held must end first.
    for run in user.runs().await.unwrap() {
        user.wait_for_end(&run.run_id).await.unwrap();
    }
    user.set_limits(at_once(1, 1)).await.unwrap();
    let holder = until("the new limits to allow a run", async || {
        user.trigger(&["limit.slow"]).await.ok()
    })
    .await;
    let waiting = user.trigger(&["limit.quick"]).await.unwrap();
    assert_eq!(
        (holder.state(), waiting.state()),
        (api::RunState::Running, api::RunState::Pending)
    );
    let request = api::ExplainRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id: waiting.run_id.clone(),
        ..Default::default()
    };
    let explanation = user
        .client
        .scheduler()
        .explain(request)
        .await
        .unwrap()
        .into_inner()
        .explanations
        .remove(0);
    assert_eq!(explanation.reason(), WaitReason::RunLimit);
    assert!(
        explanation
            .message
            .contains("max_concurrent_runs is 1: 1 runs are running and 0 wait"),
        "{explanation:?}"
    );
    assert_eq!(explanation.blockers[0].id, holder.run_id);

    let status = wait_for_refusal(&user, "limit.quick", "max_queued_runs is 1").await;
    let quota = status.get_details_quota_failure().unwrap();
    assert_eq!(
        quota.violations[0].subject,
        format!("tenants/{}", user.tenant())
    );
    assert_eq!(quota.violations[0].description, status.message());
    user.cancel(&holder.run_id).await.unwrap();
    assert_eq!(
        user.wait_for_end(&waiting.run_id).await.unwrap().state(),
        api::RunState::Succeeded
    );

    user.set_limits(api::QuotaLimits {
        max_daily_runs: Some(2),
        ..Default::default()
    })
    .await
    .unwrap();
    wait_for_refusal(&user, "limit.quick", "max_daily_runs is 2").await;
    user.set_limits(api::QuotaLimits {
        max_tasks_per_run: Some(1),
        ..Default::default()
    })
    .await
    .unwrap();
    let words = "means 2 tasks, more than the 1 that max_tasks_per_run allows";
    let status = wait_for_refusal(&user, "limit.*", words).await;
    assert!(status.get_details_quota_failure().is_some(), "{status:?}");
    let status = wait_for_plan_refusal(&user, "limit.*", words).await;
    assert!(status.get_details_quota_failure().is_some(), "{status:?}");
}
