//! How fast the whole mesh moves tasks: nine processes over mutual TLS on a private Postgres, and this process as the
//! client and the one worker.
//!
//! Time runs from TriggerRun to the end seen by GetRun. A table goes to stderr while it runs; the last line of stdout
//! is JSON.

mod counted;
mod floor;

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use counted::Counted;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Map, Value, json};
use servo_client::worker::{Attempt, Done, Handler, Worker, WorkerConfig};
use servo_client::{Client, Credentials, Tls, api};
use servo_local::process::cpu_time;
use servo_local::{Ca, Issue, LocalMesh, MeshOptions, Postgres, PostgresOptions, TENANT};
use servo_model::Service;
use servo_tests::manifest::{asset, chain, everything, manifest, partitioned_fan_out};
use servo_tests::user::User;
use tokio::sync::mpsc;

const WIDTH: usize = 10_000;
const FAN_OUT_TASKS: usize = WIDTH + 2;
const SMALL_RUNS: usize = 2_000;
const HOPS: usize = 100;
const LATENCIES: usize = 200;
/// Long enough for every slow sweep to come round.
const IDLE: Duration = Duration::from_secs(20);

#[derive(Parser)]
struct Options {
    /// Each figure is the median of so many.
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Finished tasks that the store holds when the fan-out is measured again; 0 leaves that out.
    #[arg(long, default_value_t = 1_000_000)]
    history: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.repeats > 0, "--repeats must be at least 1");
    let dir = tempfile::tempdir()?;
    let binaries = std::env::current_exe()?.parent().context("find the service binaries")?.to_path_buf();
    let counting = PostgresOptions::default().with("shared_preload_libraries", "pg_stat_statements");
    let postgres = Postgres::start_with(&dir.path().join("cluster"), counting)?;
    let mesh_options = MeshOptions {
        database_url: Some(postgres.admin_url()),
        ..MeshOptions::new(dir.path().join("servo"), binaries)
    };
    let mesh = LocalMesh::start(mesh_options, |_| ()).await?;
    let mut figures = Figures { map: earlier()? };
    figures.note("floor_tasks_per_s", floor::measure(&postgres.admin_url()).await?);
    let bench = Bench { user: User::of(&mesh)?, repeats: options.repeats };
    let mut began = work(&mesh, &dir.path().join("servo").join("tls"))?;

    let (p50, p95) = idle_latency(&bench.user, &mut began).await?;
    figures.note("idle_latency_ms_p50", p50);
    figures.note("idle_latency_ms_p95", p95);
    figures.note("idle_cpu_percent", idle_cpu_percent(&mesh, &postgres).await?);
    bench.user.deploy(chain(HOPS)).await?;
    figures.note("chain_ms_per_hop", bench.median(|| chain_ms_per_hop(&bench.user)).await?);
    bench.user.deploy(chain(5)).await?;
    figures.note("small_runs_tasks_per_s", bench.median(|| small_runs(&bench.user)).await?);
    bench.user.deploy(partitioned_fan_out(WIDTH)).await?;
    figures.note("plan_10k_ms", bench.median(|| plan_ms(&bench.user)).await?);
    let before = Counted::read(&postgres.admin_url()).await?;
    let empty = bench.median(|| fan_out(&bench.user)).await?;
    let after = Counted::read(&postgres.admin_url()).await?;
    let (statements, rows) = after.per_task(before, bench.repeats * FAN_OUT_TASKS);
    figures.note("fanout_tasks_per_s", empty);
    figures.note("sql_statements_per_task", statements);
    figures.note("rows_written_per_task", rows);
    let memory = mesh.memory()?;
    figures.note("rss_mb_total", memory.iter().map(|(_, mb)| mb).sum());
    figures.note("rss_mb_max_service", memory.iter().map(|(_, mb)| *mb).fold(0.0, f64::max));
    if options.history > 0 {
        bench.make_history(options.history).await?;
        figures.note("history_ratio", bench.median(|| fan_out(&bench.user)).await? / empty);
    }
    println!("{}", Value::Object(figures.map));
    mesh.stop()
}

/// What was measured so far.
struct Figures {
    map: Map<String, Value>,
}

impl Figures {
    fn note(&mut self, name: &str, figure: f64) {
        eprintln!("{name:<28} {figure:>12.2}");
        self.map.insert(name.to_owned(), json!((figure * 100.0).round() / 100.0));
    }
}

struct Bench {
    user: User,
    repeats: usize,
}

impl Bench {
    async fn median<F: Future<Output = Result<f64>>>(&self, mut measure: impl FnMut() -> F) -> Result<f64> {
        let mut figures = Vec::with_capacity(self.repeats);
        for _ in 0..self.repeats {
            figures.push(measure().await?);
        }
        figures.sort_by(f64::total_cmp);
        eprintln!("  {figures:.2?}");
        Ok(figures[self.repeats / 2])
    }

    /// Fills the store with finished tasks, through the front door.
    async fn make_history(&self, tasks: usize) -> Result<()> {
        for run in 1..=tasks.div_ceil(FAN_OUT_TASKS) {
            fan_out(&self.user).await?;
            if run % 10 == 0 {
                eprintln!("  history: {} of {tasks} tasks", run * FAN_OUT_TASKS);
            }
        }
        Ok(())
    }
}

/// Of one core, with nothing to do: all services, and Postgres with them.
async fn idle_cpu_percent(mesh: &LocalMesh, postgres: &Postgres) -> Result<f64> {
    let server = postgres.pid().context("Postgres does not run")?;
    let used = || anyhow::Ok((mesh.cpu_time()?, cpu_time(server)?));
    let before = used()?;
    tokio::time::sleep(IDLE).await;
    let after = used()?;
    let percent = |used: Duration| used.as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    let (services, server) = (percent(after.0 - before.0), percent(after.1 - before.1));
    eprintln!("  services {services:.2}, Postgres {server:.2}");
    Ok(services + server)
}

/// What an earlier bench printed, when it is piped in: all figures end in one line.
fn earlier() -> Result<Map<String, Value>> {
    let mut line = String::new();
    if !std::io::stdin().is_terminal() {
        std::io::stdin().read_to_string(&mut line)?;
    }
    match line.trim() {
        "" => Ok(Map::new()),
        line => serde_json::from_str(line).context("read the figures of an earlier bench from stdin"),
    }
}

/// Does nothing, and says when it began.
struct Noop(mpsc::UnboundedSender<Instant>);

impl Handler for Noop {
    async fn run(&self, _: Attempt) -> Done {
        let _ = self.0.send(Instant::now());
        Done::succeeded()
    }
}

/// Starts the worker, straight at the dispatcher and the callback with a certificate of its own.
fn work(mesh: &LocalMesh, tls: &Path) -> Result<mpsc::UnboundedReceiver<Instant>> {
    let ca = Ca::load_or_create(tls)?;
    let pair = ca.issue(&Issue::identity(&format!("spiffe://servo/worker/{TENANT}")))?;
    let credentials =
        Credentials::Certificate { certificate: pair.certificate.clone(), key: pair.key.clone() };
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
    let (began, heard) = mpsc::unbounded_channel();
    let worker = Worker::new(dispatcher, callback, WorkerConfig::new(TENANT, info), Noop(began));
    tokio::spawn(async move {
        if let Err(error) = worker.run().await {
            eprintln!("the worker ended: {error}");
        }
    });
    Ok(heard)
}

/// TriggerRun called until the body of its one task begins, with nothing else to do.
async fn idle_latency(user: &User, began: &mut mpsc::UnboundedReceiver<Instant>) -> Result<(f64, f64)> {
    user.deploy(manifest(vec![asset("idle/one", &[], "")])).await?;
    let mut latencies = Vec::with_capacity(LATENCIES);
    for _ in 0..LATENCIES {
        while began.try_recv().is_ok() {}
        let called = Instant::now();
        let run = user.trigger(&["idle/one"]).await?;
        let at = began.recv().await.context("the worker is gone")?;
        latencies.push(at.duration_since(called).as_secs_f64() * 1e3);
        user.ended(&run.run_id).await?;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    latencies.sort_by(f64::total_cmp);
    Ok((latencies[LATENCIES / 2], latencies[LATENCIES * 95 / 100]))
}

async fn chain_ms_per_hop(user: &User) -> Result<f64> {
    let called = Instant::now();
    finish(user, &["chain.*"]).await?;
    Ok(called.elapsed().as_secs_f64() * 1e3 / HOPS as f64)
}

async fn small_runs(user: &User) -> Result<f64> {
    let called = Instant::now();
    let runs: Vec<String> = stream::iter(0..SMALL_RUNS)
        .map(|_| async { Ok::<_, anyhow::Error>(user.trigger(&["chain.*"]).await?.run_id) })
        .buffer_unordered(256)
        .try_collect()
        .await?;
    let all = Arc::new(runs);
    let ended = stream::iter(0..SMALL_RUNS)
        .map(|n| {
            let all = all.clone();
            async move { user.ended(&all[n]).await }
        })
        .buffer_unordered(8)
        .try_collect::<Vec<_>>()
        .await?;
    ensure!(ended.iter().all(|run| run.state() == api::RunState::Succeeded), "a small run did not succeed");
    Ok((SMALL_RUNS * 5) as f64 / called.elapsed().as_secs_f64())
}

async fn plan_ms(user: &User) -> Result<f64> {
    let asked = api::PlanRunRequest {
        tenant: TENANT.to_owned(),
        workspace: servo_tests::user::WORKSPACE.to_owned(),
        spec: Some(everything(&["fan.*"])),
        max_tasks: 1,
        ..Default::default()
    };
    let called = Instant::now();
    let plan = user.client.planner().plan_run(asked).await?.into_inner();
    ensure!(plan.task_count as usize == FAN_OUT_TASKS, "the plan has {} tasks", plan.task_count);
    Ok(called.elapsed().as_secs_f64() * 1e3)
}

async fn fan_out(user: &User) -> Result<f64> {
    let called = Instant::now();
    let run = user.trigger_spec(everything(&["fan.*"])).await?;
    let ended = user.ended(&run.run_id).await?;
    ensure!(
        ended.state() == api::RunState::Succeeded,
        "the fan-out ended {:?}: {}",
        ended.state(),
        ended.error
    );
    Ok(FAN_OUT_TASKS as f64 / called.elapsed().as_secs_f64())
}

async fn finish(user: &User, selection: &[&str]) -> Result<()> {
    let run = user.trigger(selection).await?;
    let ended = user.ended(&run.run_id).await?;
    ensure!(ended.state() == api::RunState::Succeeded, "the run ended {:?}: {}", ended.state(), ended.error);
    Ok(())
}
