//! How fast the whole mesh moves tasks: nine processes over mutual TLS on a private Postgres, and this process as the
//! client and the one worker.
//!
//! Time runs from TriggerRun to the end seen by GetRun. A table goes to stderr while it runs; the last line of stdout
//! is JSON.

mod counted;
mod floor;
mod scenarios;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use counted::Counted;
use scenarios::Sizes;
use serde_json::{Map, Value, json};
use servo_local::{LocalMesh, MeshOptions, Postgres, PostgresOptions};
use servo_model::Service;
use servo_tests::aftermath;
use servo_tests::effort::Effort;
use servo_tests::manifest::{chain, partitioned_fan_out};
use servo_tests::user::User;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// More than this is a mistake somewhere, whatever the rate.
const ROWS_PER_TASK_MAX: f64 = 10.0;
/// Newest runs of each shard that are held against the ledger after a measurement.
const VERIFIED_PER_SHARD: u32 = 1;
/// What is held against the ledger while schedulers run; the other projections are compared by a rebuild only.
const VERIFIED: [&str; 2] = ["scheduler.runs", "scheduler.tasks"];

#[derive(Parser)]
struct Options {
    /// Each figure is the median of so many.
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Finished tasks that the store holds when the fan-out is measured again; 0 leaves that out.
    #[arg(long, default_value_t = 1_000_000)]
    history: usize,
    /// So little of everything that the figures mean nothing: to see that all of it is measured.
    #[arg(long)]
    sample: bool,
    /// Measure only this, for a profile: latency, chain, small, fanout or twins.
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
    let place = Place {
        dir: dir.path().join("servo"),
        binaries,
        postgres,
    };
    let (started, began) = Started::new(&place, 1).await?;
    if options.only.is_some() {
        eprintln!("  look into it with psql {}", started.mesh.admin_url());
    }
    let sizes = if options.sample {
        Sizes::SAMPLE
    } else {
        Sizes::FULL
    };
    let mut bench = Bench {
        place,
        started,
        repeats: options.repeats,
        sizes,
        figures: earlier()?,
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
        counted::show_statements(&bench.place.postgres.admin_url()).await?;
    }
    println!("{}", Value::Object(bench.figures));
    bench.started.stop()
}

/// What outlasts a mesh.
struct Place {
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
    /// With so many schedulers, dispatchers and callbacks. Tells whenever the body of a task begins.
    async fn new(
        place: &Place,
        instances: usize,
    ) -> Result<(Started, mpsc::UnboundedReceiver<Instant>)> {
        let options = MeshOptions {
            database_url: Some(place.postgres.admin_url()),
            ..MeshOptions::new(place.dir.clone(), place.binaries.clone())
        };
        let several = [Service::Scheduler, Service::Dispatcher, Service::Callback];
        let options = several.iter().fold(options, |options, service| {
            options.instances(*service, instances)
        });
        let mesh = LocalMesh::start(options, |_| ()).await?;
        let (worker, began) = scenarios::work(&mesh, &place.dir.join("tls"))?;
        Ok((
            Started {
                user: User::of(&mesh)?,
                mesh,
                worker,
            },
            began,
        ))
    }

    fn stop(self) -> Result<()> {
        self.worker.abort();
        self.mesh.stop()
    }
}

/// A running mesh, and what was measured of it so far.
struct Bench {
    place: Place,
    started: Started,
    repeats: usize,
    sizes: Sizes,
    figures: Map<String, Value>,
}

impl Bench {
    async fn all(&mut self, began: mpsc::UnboundedReceiver<Instant>, history: usize) -> Result<()> {
        let url = self.place.postgres.admin_url();
        let (tasks, batches) = (self.sizes.floor_tasks(), self.sizes.floor_batches);
        let floor = self.median(tasks, || floor::measure(&url, batches)).await?;
        self.note("floor_tasks_per_s", floor);
        self.latency(began).await?;
        self.idle().await?;
        self.chain().await?;
        self.small_runs().await?;
        self.fan_out().await?;
        if history > 0 {
            let empty = self.figure("fanout_tasks_per_s")?;
            self.make_history(history).await?;
            let (user, sizes) = (&self.started.user, self.sizes);
            let later = self
                .median(sizes.fan_out_tasks(), || scenarios::fan_out(user, sizes))
                .await?;
            self.note_memory()?;
            self.check().await?;
            self.note("history_ratio", later / empty);
        }
        Ok(())
    }

    /// Two of each that holds something, against one of each, in turns that a slow drift does not favour. Each begins with a
    /// Postgres that has cleaned up behind the one before.
    async fn twins(mut self) -> Result<Bench> {
        let (mut fan_outs, mut small_runs) = (Sides::default(), Sides::default());
        for instances in [1, 2, 2, 1] {
            self = self.restart(instances).await?;
            counted::clean_up(&self.place.postgres.admin_url()).await?;
            let (user, sizes) = (&self.started.user, self.sizes);
            user.deploy(chain(5)).await?;
            // The first after a start prepares what the others use, on all shards.
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
        self.note("twins_fanout_ratio", fan_outs.ratio());
        self.note("twins_small_runs_ratio", small_runs.ratio());
        Ok(self)
    }

    async fn restart(self, instances: usize) -> Result<Bench> {
        self.started.stop()?;
        let (started, _) = Started::new(&self.place, instances).await?;
        Ok(Bench { started, ..self })
    }

    async fn latency(&mut self, mut began: mpsc::UnboundedReceiver<Instant>) -> Result<()> {
        let (mut halves, mut most) = (Vec::new(), Vec::new());
        for _ in 0..self.repeats {
            let latencies =
                scenarios::idle_latency(&self.started.user, &mut began, self.sizes).await?;
            halves.push(latencies[latencies.len() / 2]);
            most.push(latencies[latencies.len() * 95 / 100]);
        }
        self.note("idle_latency_ms_p50", middle(halves));
        self.note("idle_latency_ms_p95", middle(most));
        Ok(())
    }

    /// Of one core, with nothing to do: all services, and Postgres with them.
    async fn idle(&mut self) -> Result<()> {
        let before = self.effort()?;
        tokio::time::sleep(self.sizes.idle).await;
        let (services, server) = self.effort()?.percent_of_a_core(&before, self.sizes.idle);
        eprintln!("  services {services:.2}, Postgres {server:.2}");
        self.note("idle_cpu_percent", services + server);
        Ok(())
    }

    async fn chain(&mut self) -> Result<()> {
        let (user, hops) = (&self.started.user, self.sizes.hops);
        user.deploy(chain(hops)).await?;
        let per_hop = self
            .median(hops, || scenarios::chain_ms_per_hop(user, hops))
            .await?;
        self.check().await?;
        self.note("chain_ms_per_hop", per_hop);
        Ok(())
    }

    async fn small_runs(&mut self) -> Result<()> {
        let (user, sizes) = (&self.started.user, self.sizes);
        user.deploy(chain(5)).await?;
        let per_s = self
            .median(sizes.small_tasks(), || scenarios::small_runs(user, sizes))
            .await?;
        self.check().await?;
        self.note("small_runs_tasks_per_s", per_s);
        Ok(())
    }

    async fn fan_out(&mut self) -> Result<()> {
        let (url, sizes, tasks) = (
            self.place.postgres.admin_url(),
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
        self.note("plan_10k_ms", planned);
        let before = Counted::read(&url, sizes.told).await?;
        let per_s = self
            .median(tasks, || scenarios::fan_out(&self.started.user, sizes))
            .await?;
        let after = Counted::read(&url, sizes.told).await?;
        self.note_memory()?;
        self.check().await?;
        let (statements, rows) = after.per_task(before, self.repeats * tasks);
        // In a sample there are more rows of the run than of its tasks.
        ensure!(
            sizes.is_sample() || rows <= ROWS_PER_TASK_MAX,
            "a task cost {rows:.1} rows"
        );
        self.note("fanout_tasks_per_s", per_s);
        self.note("sql_statements_per_task", statements);
        self.note("rows_written_per_task", rows);
        Ok(())
    }

    fn note_memory(&mut self) -> Result<()> {
        let memory = self.started.mesh.memory()?;
        let each: Vec<String> = memory
            .iter()
            .map(|(service, mb)| format!("{service} {mb:.0}"))
            .collect();
        eprintln!("  MB: {}", each.join(", "));
        self.note_highest("rss_mb_total", memory.iter().map(|(_, mb)| mb).sum());
        self.note_highest(
            "rss_mb_max_service",
            memory.iter().map(|(_, mb)| *mb).fold(0.0, f64::max),
        );
        Ok(())
    }

    /// Fills the store with finished tasks, through the front door.
    async fn make_history(&self, tasks: usize) -> Result<()> {
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
        Ok(middle(self.measure(tasks, measure).await?))
    }

    /// As often as asked for.
    async fn measure<F>(&self, tasks: usize, mut measure: impl FnMut() -> F) -> Result<Vec<f64>>
    where
        F: Future<Output = Result<f64>>,
    {
        let before = self.effort()?;
        let mut figures = Vec::with_capacity(self.repeats);
        for _ in 0..self.repeats {
            figures.push(measure().await?);
        }
        eprintln!("  {figures:.2?}");
        eprintln!(
            "  {}",
            self.effort()?.per_task(&before, tasks * self.repeats)
        );
        Ok(figures)
    }

    /// What was measured counts only if it was done right.
    async fn check(&self) -> Result<()> {
        for projection in VERIFIED {
            self.started
                .user
                .verify(projection, VERIFIED_PER_SHARD)
                .await?;
        }
        let violations = aftermath::violations(self.started.mesh.admin_url()).await?;
        ensure!(violations.is_empty(), "{}", violations.join("\n"));
        Ok(())
    }

    fn effort(&self) -> Result<Effort> {
        let postgres = self.place.postgres.pid().context("Postgres does not run")?;
        Effort::read(&self.started.mesh, postgres)
    }

    fn figure(&self, name: &str) -> Result<f64> {
        self.figures
            .get(name)
            .and_then(Value::as_f64)
            .with_context(|| format!("{name} was not measured"))
    }

    /// Of several readings the highest counts.
    fn note_highest(&mut self, name: &str, figure: f64) {
        let before = self.figure(name).unwrap_or(0.0);
        self.note(name, figure.max(before));
    }

    fn note(&mut self, name: &str, figure: f64) {
        eprintln!("{name:<28} {figure:>12.2}");
        self.figures
            .insert(name.to_owned(), json!((figure * 100.0).round() / 100.0));
    }
}

/// Figures of one instance of each, and of two.
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

    /// What two reach of what one does.
    fn ratio(self) -> f64 {
        middle(self.two) / middle(self.one)
    }
}

/// The median.
fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// What an earlier bench printed, when it is piped in: all figures end in one line.
fn earlier() -> Result<Map<String, Value>> {
    let mut line = String::new();
    if !std::io::stdin().is_terminal() {
        std::io::stdin().read_to_string(&mut line)?;
    }
    match line.trim() {
        "" => Ok(Map::new()),
        line => {
            serde_json::from_str(line).context("read the figures of an earlier bench from stdin")
        }
    }
}
