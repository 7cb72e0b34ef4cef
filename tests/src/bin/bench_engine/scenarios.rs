//! The scenarios: each calls the mesh through the gateway and returns one figure.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use servo_client::worker::{Attempt, AttemptOutcome, Handler, Worker, WorkerConfig};
use servo_client::{Client, Credentials, Tls, api};
use servo_local::{Ca, Issue, MeshInfo, TENANT};
use servo_model::Service;
use servo_tests::manifest::{all_partitions, asset, manifest};
use servo_tests::user::User;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) width: usize,
    pub(crate) hops: usize,
    small_runs: usize,
    latencies: usize,
    pub(crate) floor_batches: i64,
    /// Long enough for every slow loop to run.
    pub(crate) idle: Duration,
    /// Idle backends report their statistics within ten seconds.
    pub(crate) statistics_delay: Duration,
}

impl Sizes {
    pub(crate) const FULL: Sizes = Sizes {
        width: 10_000,
        hops: 100,
        small_runs: 2_000,
        latencies: 200,
        floor_batches: 40,
        idle: Duration::from_secs(20),
        statistics_delay: Duration::from_secs(11),
    };
    pub(crate) const SAMPLE: Sizes = Sizes {
        width: 100,
        hops: 10,
        small_runs: 20,
        latencies: 5,
        floor_batches: 1,
        idle: Duration::from_secs(1),
        statistics_delay: Duration::from_secs(1),
    };

    pub(crate) fn is_sample(self) -> bool {
        self == Sizes::SAMPLE
    }

    /// A root, `width` partitions, and a join.
    pub(crate) fn fan_out_tasks(self) -> usize {
        self.width + 2
    }

    pub(crate) fn small_tasks(self) -> usize {
        self.small_runs * 5
    }

    pub(crate) fn floor_tasks(self) -> usize {
        usize::try_from(crate::floor::tasks(self.floor_batches)).unwrap_or(usize::MAX)
    }
}

/// Does nothing and sends the time at which it began.
struct Noop(mpsc::UnboundedSender<Instant>);

impl Handler for Noop {
    async fn run(&self, _: Attempt) -> AttemptOutcome {
        let _ = self.0.send(Instant::now());
        AttemptOutcome::succeeded()
    }
}

/// Starts the worker, which calls the dispatcher and the callback directly with a certificate.
pub(crate) fn start_worker(
    mesh: &MeshInfo,
    tls: &Path,
) -> Result<(JoinHandle<()>, mpsc::UnboundedReceiver<Instant>)> {
    let ca = Ca::load_or_create(tls)?;
    let pair = ca.issue(&Issue::identity(&format!("spiffe://servo/worker/{TENANT}")))?;
    let credentials = Credentials::Certificate {
        certificate: pair.certificate.clone(),
        key: pair.key.clone(),
    };
    let address = |service| mesh.address(service).replace("127.0.0.1", "localhost");
    let trust = Tls::new(ca.certificate());
    let dispatcher = Client::connect(&address(Service::Dispatcher), &trust, credentials)?;
    let callback = dispatcher.at(&address(Service::Callback))?;
    let info = api::WorkerInfo {
        name: "bench".to_owned(),
        slots: 1_024,
        handlers: vec!["noop".to_owned()],
        ..Default::default()
    };
    let (began, beginnings) = mpsc::unbounded_channel();
    let worker = Worker::new(
        dispatcher,
        callback,
        WorkerConfig::new(TENANT, info),
        Noop(began),
    );
    let worker = tokio::spawn(async move {
        if let Err(error) = worker.run().await {
            eprintln!("the worker ended: {error}");
        }
    });
    Ok((worker, beginnings))
}

/// The time from the call of TriggerRun until the body of its only task begins, on an idle mesh; in
/// milliseconds, sorted.
pub(crate) async fn idle_latency(
    user: &User,
    began: &mut mpsc::UnboundedReceiver<Instant>,
    sizes: Sizes,
) -> Result<Vec<f64>> {
    user.deploy(manifest(vec![asset("idle/one", &[], "")]))
        .await?;
    let mut latencies = Vec::with_capacity(sizes.latencies);
    for _ in 0..sizes.latencies {
        while began.try_recv().is_ok() {}
        let called = Instant::now();
        let run = user.trigger(&["idle/one"]).await?;
        let at = began.recv().await.context("the worker is gone")?;
        latencies.push(at.duration_since(called).as_secs_f64() * 1e3);
        user.wait_for_end(&run.run_id).await?;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    latencies.sort_by(f64::total_cmp);
    Ok(latencies)
}

pub(crate) async fn chain_ms_per_hop(user: &User, hops: usize) -> Result<f64> {
    let called = Instant::now();
    finish(user, &["chain.*"]).await?;
    Ok(called.elapsed().as_secs_f64() * 1e3 / hops as f64)
}

pub(crate) async fn small_runs(user: &User, sizes: Sizes) -> Result<f64> {
    let called = Instant::now();
    let runs: Vec<String> = stream::iter(0..sizes.small_runs)
        .map(|_| async { Ok::<_, anyhow::Error>(user.trigger(&["chain.*"]).await?.run_id) })
        .buffer_unordered(256)
        .try_collect()
        .await?;
    let all = Arc::new(runs);
    let ended = stream::iter(0..sizes.small_runs)
        .map(|n| {
            let all = all.clone();
            async move { user.wait_for_end(&all[n]).await }
        })
        .buffer_unordered(8)
        .try_collect::<Vec<_>>()
        .await?;
    ensure!(
        ended
            .iter()
            .all(|run| run.state() == api::RunState::Succeeded),
        "a small run did not succeed"
    );
    Ok(sizes.small_tasks() as f64 / called.elapsed().as_secs_f64())
}

pub(crate) async fn plan_ms(user: &User, sizes: Sizes) -> Result<f64> {
    let request = api::PlanRunRequest {
        tenant: TENANT.to_owned(),
        workspace: servo_tests::user::WORKSPACE.to_owned(),
        spec: Some(all_partitions(&["fan.*"])),
        max_tasks: 1,
        ..Default::default()
    };
    let called = Instant::now();
    let plan = user.client.planner().plan_run(request).await?.into_inner();
    ensure!(
        plan.task_count as usize == sizes.fan_out_tasks(),
        "the plan has {} tasks",
        plan.task_count
    );
    Ok(called.elapsed().as_secs_f64() * 1e3)
}

pub(crate) async fn fan_out(user: &User, sizes: Sizes) -> Result<f64> {
    let called = Instant::now();
    let run = user.trigger_spec(all_partitions(&["fan.*"])).await?;
    let ended = user.wait_for_end(&run.run_id).await?;
    ensure!(
        ended.state() == api::RunState::Succeeded,
        "the fan-out ended {:?}: {}",
        ended.state(),
        ended.error
    );
    Ok(sizes.fan_out_tasks() as f64 / called.elapsed().as_secs_f64())
}

async fn finish(user: &User, selection: &[&str]) -> Result<()> {
    let run = user.trigger(selection).await?;
    let ended = user.wait_for_end(&run.run_id).await?;
    ensure!(
        ended.state() == api::RunState::Succeeded,
        "the run ended {:?}: {}",
        ended.state(),
        ended.error
    );
    Ok(())
}
