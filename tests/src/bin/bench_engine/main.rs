//! Measures how fast the whole mesh runs tasks: nine processes over mutual TLS on a private
//! Postgres, and this process as the client and the only worker.
//!
//! Times are from the call of TriggerRun until GetRun returns an ended run. Prints a table to
//! stderr while it runs; the last line of stdout is JSON.

#![allow(
    clippy::disallowed_methods,
    reason = "a tool of the tests, not of the product"
)]

mod floor;
mod postgres_stats;
mod scenarios;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use postgres_stats::PostgresStats;
use scenarios::Sizes;
use serde_json::{Map, Value, json};
use servo_local::{LocalMesh, MeshOptions, Postgres, PostgresOptions};
use servo_model::Service;
use servo_tests::cpu_usage::CpuUsage;
use servo_tests::invariants;
use servo_tests::manifest::{chain, partitioned_fan_out};
use servo_tests::user::User;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// More rows mean a defect, whatever the rate.
const ROWS_PER_TASK_MAX: f64 = 10.0;
/// How many of the newest runs of each shard are compared with the ledger after a measurement.
const VERIFIED_PER_SHARD: u32 = 1;
/// The projections that are compared while schedulers run; only a rebuild compares the others.
const VERIFIED: [&str; 2] = ["scheduler.runs", "scheduler.tasks"];

#[derive(Parser)]
struct Options {
    /// How many measurements the median of each figure is taken from.
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// How many finished tasks the store holds when the fan-out is measured again; 0 skips that.
    #[arg(long, default_value_t = 1_000_000)]
    history: usize,
    /// Measures too little for meaningful figures, to test the benchmark itself.
    #[arg(long)]
    sample: bool,
    /// Measures one scenario for a profile: latency, chain, small, fanout or twins.
    #[arg(long)]
    only: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.repeats > 0, "--repeats must be at least 1");
    let dir = tempfile::tempdir()?;
    let binaries = std::env::current_exe()?
        .parent()
        .context("find the service binaries")?
        .to_path_buf();
    let mut counting =
        PostgresOptions::default().with("shared_preload_libraries", "pg_stat_statements");
    if options.only.is_some() {
        counting = counting
            .with("pg_stat_statements.track", "all")
            .with("pg_stat_statements.track_planning", "on");
    }
    let postgres = Postgres::start_with(&dir.path().join("cluster"), counting)?;
    let environment = Environment {
        dir: dir.path().join("servo"),
        binaries,
        postgres,
    };
    let (started, began) = Started::new(&environment, 1).await?;
    if options.only.is_some() {
        eprintln!("  inspect with psql {}", started.mesh.admin_url());
    }
    let sizes = if options.sample {
        Sizes::SAMPLE
    } else {
        Sizes::FULL
    };
    let mut bench = Bench {
        environment,
        started,
        repeats: options.repeats,
        sizes,
        figures: piped_figures()?,
    };
    match options.only.as_deref() {
        None => bench.all(began, options.history).await?,
        Some("latency") => bench.latency(began).await?,
        Some("chain") => bench.chain().await?,
        Some("small") => bench.small_runs().await?,
        Some("fanout") => bench.fan_out().await?,
        Some("twins") => {}
        Some(other) => {
            bail!("--only {other} is unknown; it is latency, chain, small, fanout or twins")
        }
    }
    if matches!(options.only.as_deref(), None | Some("twins")) {
        bench = bench.twins().await?;
    }
    if options.only.is_some() {
        postgres_stats::print_statements(&bench.environment.postgres.admin_url()).await?;
    }
    println!("{}", Value::Object(bench.figures));
    bench.started.stop().await
}

/// The parts that outlive one mesh.
struct Environment {
    dir: PathBuf,
    binaries: PathBuf,
    postgres: Postgres,
}

/// A mesh, its user and its worker.
struct Started {
    mesh: LocalMesh,
    user: User,
    worker: JoinHandle<()>,
}

impl Started {
    /// Starts `instances` schedulers, dispatchers and callback instances. The channel receives the
    /// time at which the body of each task begins.
    async fn new(
        environment: &Environment,
        instances: usize,
    ) -> Result<(Started, mpsc::UnboundedReceiver<Instant>)> {
        let options = MeshOptions {
            database_url: Some(environment.postgres.admin_url()),
            ..MeshOptions::new(environment.dir.clone(), environment.binaries.clone())
        };
        let several = [Service::Scheduler, Service::Dispatcher, Service::Callback];
        let options = several.iter().fold(options, |options, service| {
            options.instances(*service, instances)
        });
        let mesh = LocalMesh::start(options, |_| ()).await?;
        let (worker, began) = scenarios::start_worker(&mesh, &environment.dir.join("tls"))?;
        Ok((
            Started {
                user: User::of(&mesh)?,
                mesh,
                worker,
            },
            began,
        ))
    }

    async fn stop(self) -> Result<()> {
        self.worker.abort();
        self.mesh.stop().await
    }
}

/// A running mesh and the figures that were measured so far.
struct Bench {
    environment: Environment,
    started: Started,
    repeats: usize,
    sizes: Sizes,
    figures: Map<String, Value>,
}

impl Bench {
    async fn all(&mut self, began: mpsc::UnboundedReceiver<Instant>, history: usize) -> Result<()> {
        let url = self.environment.postgres.admin_url();
        let (tasks, batches) = (self.sizes.floor_tasks(), self.sizes.floor_batches);
        let floor = self.median(tasks, || floor::measure(&url, batches)).await?;
        self.record("floor_tasks_per_s", floor);
        self.latency(began).await?;
        self.idle().await?;
        self.chain().await?;
        self.small_runs().await?;
        self.fan_out().await?;
        if history > 0 {
            let empty = self.figure("fanout_tasks_per_s")?;
            self.create_history(history).await?;
            let (user, sizes) = (&self.started.user, self.sizes);
            let later = self
                .median(sizes.fan_out_tasks(), || scenarios::fan_out(user, sizes))
                .await?;
            self.record_memory()?;
            self.check().await?;
            self.record("history_ratio", later / empty);
        }
        Ok(())
    }

    /// Compares two instances of each sharded service with one, in an order that a slow drift does
    /// not favour. Each turn begins with a Postgres that has finished the maintenance of the last.
    async fn twins(mut self) -> Result<Bench> {
        let (mut fan_outs, mut small_runs) = (Sides::default(), Sides::default());
        for instances in [1, 2, 2, 1] {
            self = self.restart(instances).await?;
            postgres_stats::vacuum(&self.environment.postgres.admin_url()).await?;
            let (user, sizes) = (&self.started.user, self.sizes);
            user.deploy(chain(5)).await?;
            // The first round after a start fills caches and is not measured.
            scenarios::small_runs(user, sizes).await?;
            let measured = self
                .measure(sizes.small_tasks(), || scenarios::small_runs(user, sizes))
                .await?;
            small_runs.side(instances).extend(measured);
            user.deploy(partitioned_fan_out(sizes.width)).await?;
            scenarios::fan_out(user, sizes).await?;
            let measured = self
                .measure(sizes.fan_out_tasks(), || scenarios::fan_out(user, sizes))
                .await?;
            fan_outs.side(instances).extend(measured);
            self.check().await?;
        }
        self.record("twins_fanout_ratio", fan_outs.ratio());
        self.record("twins_small_runs_ratio", small_runs.ratio());
        Ok(self)
    }

    async fn restart(self, instances: usize) -> Result<Bench> {
        self.started.stop().await?;
        let (started, _) = Started::new(&self.environment, instances).await?;
        Ok(Bench { started, ..self })
    }

    async fn latency(&mut self, mut began: mpsc::UnboundedReceiver<Instant>) -> Result<()> {
        let (mut p50, mut p95) = (Vec::new(), Vec::new());
        for _ in 0..self.repeats {
            let latencies =
                scenarios::idle_latency(&self.started.user, &mut began, self.sizes).await?;
            p50.push(latencies[latencies.len() / 2]);
            p95.push(latencies[latencies.len() * 95 / 100]);
        }
        self.record("idle_latency_ms_p50", median(p50));
        self.record("idle_latency_ms_p95", median(p95));
        Ok(())
    }

    /// The share of one core that all services and Postgres use on an idle mesh.
    async fn idle(&mut self) -> Result<()> {
        let before = self.cpu_usage()?;
        tokio::time::sleep(self.sizes.idle).await;
        let (services, postgres) = self.cpu_usage()?.percent_of_core(&before, self.sizes.idle);
        eprintln!("  services {services:.2}, Postgres {postgres:.2}");
        self.record("idle_cpu_percent", services + postgres);
        Ok(())
    }

    async fn chain(&mut self) -> Result<()> {
        let (user, hops) = (&self.started.user, self.sizes.hops);
        user.deploy(chain(hops)).await?;
        let per_hop = self
            .median(hops, || scenarios::chain_ms_per_hop(user, hops))
            .await?;
        self.check().await?;
        self.record("chain_ms_per_hop", per_hop);
        Ok(())
    }

    async fn small_runs(&mut self) -> Result<()> {
        let (user, sizes) = (&self.started.user, self.sizes);
        user.deploy(chain(5)).await?;
        let per_s = self
            .median(sizes.small_tasks(), || scenarios::small_runs(user, sizes))
            .await?;
        self.check().await?;
        self.record("small_runs_tasks_per_s", per_s);
        Ok(())
    }

    async fn fan_out(&mut self) -> Result<()> {
        let (url, sizes, tasks) = (
            self.environment.postgres.admin_url(),
            self.sizes,
            self.sizes.fan_out_tasks(),
        );
        self.started
            .user
            .deploy(partitioned_fan_out(sizes.width))
            .await?;
        let planned = self
            .median(tasks, || scenarios::plan_ms(&self.started.user, sizes))
            .await?;
        self.record("plan_10k_ms", planned);
        let before = PostgresStats::read(&url, sizes.statistics_delay).await?;
        let per_s = self
            .median(tasks, || scenarios::fan_out(&self.started.user, sizes))
            .await?;
        let after = PostgresStats::read(&url, sizes.statistics_delay).await?;
        self.record_memory()?;
        self.check().await?;
        let (statements, rows) = after.per_task(before, self.repeats * tasks);
        // A sample has more rows per run than per task.
        ensure!(
            sizes.is_sample() || rows <= ROWS_PER_TASK_MAX,
            "a task cost {rows:.1} rows"
        );
        self.record("fanout_tasks_per_s", per_s);
        self.record("sql_statements_per_task", statements);
        self.record("rows_written_per_task", rows);
        Ok(())
    }

    fn record_memory(&mut self) -> Result<()> {
        let memory = self.started.mesh.memory()?;
        let each: Vec<String> = memory
            .iter()
            .map(|(service, mb)| format!("{service} {mb:.0}"))
            .collect();
        eprintln!("  MB: {}", each.join(", "));
        self.record_highest("rss_mb_total", memory.iter().map(|(_, mb)| mb).sum());
        self.record_highest(
            "rss_mb_max_service",
            memory.iter().map(|(_, mb)| *mb).fold(0.0, f64::max),
        );
        Ok(())
    }

    /// Fills the store with finished tasks.
    async fn create_history(&self, tasks: usize) -> Result<()> {
        let each = self.sizes.fan_out_tasks();
        for run in 1..=tasks.div_ceil(each) {
            scenarios::fan_out(&self.started.user, self.sizes).await?;
            if run % 10 == 0 {
                eprintln!("  history: {} of {tasks} tasks", run * each);
            }
        }
        Ok(())
    }

    async fn median<F>(&self, tasks: usize, measure: impl FnMut() -> F) -> Result<f64>
    where
        F: Future<Output = Result<f64>>,
    {
        Ok(median(self.measure(tasks, measure).await?))
    }

    /// Measures `self.repeats` times.
    async fn measure<F>(&self, tasks: usize, mut measure: impl FnMut() -> F) -> Result<Vec<f64>>
    where
        F: Future<Output = Result<f64>>,
    {
        let before = self.cpu_usage()?;
        let mut figures = Vec::with_capacity(self.repeats);
        for _ in 0..self.repeats {
            figures.push(measure().await?);
        }
        eprintln!("  {figures:.2?}");
        eprintln!(
            "  {}",
            self.cpu_usage()?.per_task(&before, tasks * self.repeats)
        );
        Ok(figures)
    }

    /// A figure counts only if the work was done correctly.
    async fn check(&self) -> Result<()> {
        for projection in VERIFIED {
            self.started
                .user
                .verify(projection, VERIFIED_PER_SHARD)
                .await?;
        }
        let violations = invariants::violations(self.started.mesh.admin_url()).await?;
        ensure!(violations.is_empty(), "{}", violations.join("\n"));
        Ok(())
    }

    fn cpu_usage(&self) -> Result<CpuUsage> {
        let postgres = self
            .environment
            .postgres
            .pid()
            .context("Postgres does not run")?;
        CpuUsage::read(&self.started.mesh, postgres)
    }

    fn figure(&self, name: &str) -> Result<f64> {
        self.figures
            .get(name)
            .and_then(Value::as_f64)
            .with_context(|| format!("{name} was not measured"))
    }

    /// Keeps the highest of several readings.
    fn record_highest(&mut self, name: &str, figure: f64) {
        let before = self.figure(name).unwrap_or(0.0);
        self.record(name, figure.max(before));
    }

    fn record(&mut self, name: &str, figure: f64) {
        eprintln!("{name:<28} {figure:>12.2}");
        self.figures
            .insert(name.to_owned(), json!((figure * 100.0).round() / 100.0));
    }
}

/// The figures with one instance of each service and with two.
#[derive(Default)]
struct Sides {
    one: Vec<f64>,
    two: Vec<f64>,
}

impl Sides {
    fn side(&mut self, instances: usize) -> &mut Vec<f64> {
        if instances == 1 {
            &mut self.one
        } else {
            &mut self.two
        }
    }

    /// The figure of two instances relative to that of one.
    fn ratio(self) -> f64 {
        median(self.two) / median(self.one)
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The figures of an earlier benchmark that are piped in, so that one line shows all of them.
fn piped_figures() -> Result<Map<String, Value>> {
    let mut line = String::new();
    if !std::io::stdin().is_terminal() {
        std::io::stdin().read_to_string(&mut line)?;
    }
    match line.trim() {
        "" => Ok(Map::new()),
        line => serde_json::from_str(line)
            .context("parse the figures of an earlier benchmark from stdin"),
    }
}
