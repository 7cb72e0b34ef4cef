//! A whole mesh on one machine: a private Postgres (or one given by URL), certificates, migrations,
//! and one or more instances of the nine services, as separate processes (or one of each in a
//! single process) with mutual TLS on loopback.

mod config;
mod database;
mod info;
mod keys;
mod options;
mod probe;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use servo_model::Service;
use servo_model::service::{HTTP_PORT_OFFSET, METRICS_PORT_OFFSET};

use crate::ca::{Ca, Issue};
use crate::child::Child;
use crate::lock::{DirLock, PortsLock};
use crate::ports::FreePorts;
use crate::postgres::Postgres;
use crate::process::{cpu_time, memory_mb, peak_memory_mb};
use crate::secret::load_or_create_secret;
use database::Database;
pub use info::MeshInfo;
pub use keys::CONFINED_WORKSPACE;
use keys::Keys;
pub use options::{Instance, LivenessTimings, MeshOptions};
use probe::Probe;
pub use probe::ServiceStatus;

/// The tenant of every local mesh.
pub const TENANT: &str = "demo";

const DRAIN_GRACE: Duration = Duration::from_secs(15);
const DRAIN_GRACE_WITHOUT_POSTGRES: Duration = Duration::from_secs(1);
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long services may take to become healthy.
const HEALTHY_WITHIN: Duration = Duration::from_secs(120);

/// A completed step of the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Postgres,
    Certificates,
    Migrations,
    Services,
    Healthy,
}

/// A running mesh. Dropping it kills the processes that [`LocalMesh::stop`] would have stopped
/// gracefully.
pub struct LocalMesh {
    info: MeshInfo,
    binaries: PathBuf,
    one_process: Option<PathBuf>,
    timings: Option<LivenessTimings>,
    shared_workers: bool,
    otlp_endpoint: Option<String>,
    run_id_secret: String,
    page_token_secret: String,
    signing_secret: String,
    probe: Probe,
    /// The processes that run, and those that ended unexpectedly.
    processes: BTreeMap<Instance, Child>,
    database: Database,
    _lock: DirLock,
    /// Keeps the ports reserved, so that a restarted instance can listen on its port again.
    _kept_ports: FreePorts,
}

impl LocalMesh {
    /// Starts everything and waits until all services are healthy. `done` is called after each
    /// step.
    pub async fn start(options: MeshOptions, mut done: impl FnMut(Step)) -> Result<LocalMesh> {
        fs::create_dir_all(&options.dir)
            .with_context(|| format!("create {}", options.dir.display()))?;
        let dir = options.dir.canonicalize()?;
        let lock = DirLock::take(&dir)?;
        let database = Database::open(
            &dir,
            options.database_url.as_deref(),
            options.postgres.clone(),
        )?;
        done(Step::Postgres);
        let probe = write_certificates(&dir.join("tls"))?;
        done(Step::Certificates);
        database.migrate().await?;
        done(Step::Migrations);
        let keys = Keys::load_or_create(&dir, &options.tenants)?;
        let run_id_secret = load_or_create_secret(&dir.join("run-id-secret"), "")?;
        let page_token_secret = load_or_create_secret(&dir.join("page-token-secret"), "")?;
        let signing_secret = load_or_create_secret(&dir.join("signing-secret"), "")?;
        let ports_lock = tokio::task::spawn_blocking(PortsLock::take)
            .await?
            .context("wait for free ports")?;
        let mut kept_ports = FreePorts::default();
        let ports = choose_ports(&options.all_instances(), &mut kept_ports)?;
        let (service_url, role_password) = database.for_services();
        let info = MeshInfo {
            is_one_process: options.one_process.is_some(),
            ports,
            keys,
            admin_url: database.admin_url().to_owned(),
            service_url: service_url.to_owned(),
            role_password: role_password.to_owned(),
            dir,
        };
        let mut mesh = LocalMesh {
            info,
            binaries: options.binaries,
            one_process: options.one_process,
            timings: options.timings,
            shared_workers: options.shared_workers,
            otlp_endpoint: options.otlp_endpoint,
            run_id_secret,
            page_token_secret,
            signing_secret,
            probe,
            processes: BTreeMap::new(),
            database,
            _lock: lock,
            _kept_ports: kept_ports,
        };
        for instance in mesh.instances() {
            config::write(&mesh, instance)?;
        }
        mesh.launch_all()?;
        done(Step::Services);
        mesh.wait_until_healthy().await?;
        drop(ports_lock);
        mesh.info.store()?;
        done(Step::Healthy);
        Ok(mesh)
    }

    /// The private Postgres, unless one was given by URL.
    pub fn postgres(&mut self) -> Option<&mut Postgres> {
        self.database.private_cluster()
    }

    /// The process of a service.
    pub fn process(&mut self, instance: impl Into<Instance>) -> Option<&mut Child> {
        self.processes.get_mut(&instance.into())
    }

    /// `kill -9` of one instance. [`LocalMesh::launch`] starts it again.
    pub fn kill_9(&mut self, instance: impl Into<Instance>) -> Result<()> {
        if let Some(mut child) = self.processes.remove(&instance.into()) {
            child.kill_group()?;
        }
        Ok(())
    }

    /// The resident memory of each process, in megabytes.
    pub fn memory(&self) -> Result<Vec<(Instance, f64)>> {
        self.processes
            .iter()
            .map(|(instance, child)| Ok((*instance, memory_mb(child.id())?)))
            .collect()
    }

    /// The peak of resident memory of each process, in megabytes.
    pub fn peak_memory(&self) -> Result<Vec<(Instance, f64)>> {
        self.processes
            .iter()
            .map(|(instance, child)| Ok((*instance, peak_memory_mb(child.id())?)))
            .collect()
    }

    /// The CPU time that each process used so far.
    pub fn cpu_times(&self) -> Result<Vec<(Instance, Duration)>> {
        self.processes
            .iter()
            .map(|(instance, child)| Ok((*instance, cpu_time(child.id())?)))
            .collect()
    }

    /// The status of each instance that was not killed.
    pub async fn status(&self) -> Vec<ServiceStatus> {
        let status =
            |instance: &Instance| self.probe.status(instance.service, self.address(*instance));
        match self.one_process {
            Some(_) => futures::future::join_all(self.ports.keys().map(status)).await,
            None => futures::future::join_all(self.processes.keys().map(status)).await,
        }
    }

    /// Starts the process of a service, for the first time or after it was killed.
    pub fn launch(&mut self, instance: impl Into<Instance>) -> Result<()> {
        self.launch_with(instance, &[])
    }

    /// Like [`LocalMesh::launch`], with additional environment variables.
    pub fn launch_with(
        &mut self,
        instance: impl Into<Instance>,
        variables: &[(&str, &str)],
    ) -> Result<()> {
        let instance = instance.into();
        let mut command =
            Child::command(&self.binaries.join(format!("servo-{}", instance.service)));
        command
            .env("SERVO_CONFIG", self.config_path(instance))
            .envs(variables.iter().copied());
        self.spawn(instance, command)
    }

    fn launch_all(&mut self) -> Result<()> {
        let Some(program) = &self.one_process else {
            return self
                .instances()
                .into_iter()
                .try_for_each(|instance| self.launch(instance));
        };
        let mut command = Child::command(program);
        command
            .args(["serve", "--config"])
            .arg(self.dir.join("config"));
        // The single process is registered as the gateway.
        self.spawn(Service::Gateway.into(), command)
    }

    fn spawn(&mut self, instance: Instance, mut command: Command) -> Result<()> {
        fs::create_dir_all(self.dir.join("logs"))?;
        let log_path = self.log_path(instance);
        let log = File::options()
            .create(true)
            .append(true)
            .open(&log_path)
            .context("open a log")?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let program = command.get_program().display().to_string();
        let child = Child::spawn(&instance.to_string(), command)
            .with_context(|| format!("start {program}"))?;
        self.processes.insert(instance, child);
        Ok(())
    }

    /// Drains all instances of a service and waits until they have ended.
    pub async fn stop_service(&mut self, service: Service) -> Result<()> {
        let of_service = |instance: &Instance| instance.service == service;
        for instance in self
            .processes
            .keys()
            .copied()
            .filter(of_service)
            .collect::<Vec<_>>()
        {
            if let Some(mut child) = self.processes.remove(&instance) {
                drain(&mut child)?;
                wait_or_kill(&mut child, DRAIN_GRACE).await?;
            }
        }
        Ok(())
    }

    /// Drains all services, then stops Postgres.
    pub async fn stop(mut self) -> Result<()> {
        let grace = self.drain_grace()?;
        self.processes.values_mut().try_for_each(drain)?;
        // No second signal, because on that a service exits at once and abandons its work.
        for child in self.processes.values_mut() {
            wait_or_kill(child, grace).await?;
        }
        self.postgres().map_or(Ok(()), Postgres::stop)
    }

    /// Without Postgres the work of a service cannot be finished.
    fn drain_grace(&mut self) -> Result<Duration> {
        let ended = self.postgres().map_or(Ok(None), Postgres::ended)?;
        Ok(if ended.is_some() {
            DRAIN_GRACE_WITHOUT_POSTGRES
        } else {
            DRAIN_GRACE
        })
    }

    /// Polls until all services are healthy; fails with the last log line of a service that ended,
    /// and after [`HEALTHY_WITHIN`] with the reason of each service that is not healthy.
    pub async fn wait_until_healthy(&mut self) -> Result<()> {
        let deadline = Instant::now() + HEALTHY_WITHIN;
        loop {
            self.check_processes()?;
            let mut status = self.status().await;
            status.retain(|status| !status.healthy);
            if status.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!(
                    "waited {} s for {}",
                    HEALTHY_WITHIN.as_secs(),
                    waiting(&status)
                );
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits forever while everything runs; fails with the last log line of a service that ended,
    /// or when the private Postgres ended.
    pub async fn wait_for_failure(&mut self) -> Result<()> {
        loop {
            self.check_processes()?;
            tokio::time::sleep(POLL_INTERVAL * 10).await;
        }
    }

    fn check_processes(&mut self) -> Result<()> {
        for (instance, child) in &mut self.processes {
            if let Some(status) = child.try_wait()? {
                let log = self.info.log_path(*instance);
                bail!(
                    "{instance} ended with {status}: {} ({})",
                    last_line(&log),
                    log.display()
                );
            }
        }
        if let Some(postgres) = self.postgres()
            && let Some(status) = postgres.ended()?
        {
            let log = postgres.log_path();
            bail!(
                "Postgres ended with {status} ({}); its data is kept for the next start",
                log.display()
            );
        }
        Ok(())
    }
}

impl Deref for LocalMesh {
    type Target = MeshInfo;

    fn deref(&self) -> &MeshInfo {
        &self.info
    }
}

/// Issues new certificates at every start, which is cheap and avoids handling their expiry.
fn write_certificates(dir: &Path) -> Result<Probe> {
    let ca = Ca::load_or_create(dir)?;
    for service in Service::ALL {
        ca.issue(&Issue::identity(&service.spiffe_id()))?
            .write(dir, service.name())?;
    }
    Probe::new(dir)
}

fn choose_ports(instances: &[Instance], free: &mut FreePorts) -> Result<BTreeMap<Instance, u16>> {
    let choose = |instance: &Instance| {
        Ok((
            *instance,
            free.group(
                instance.service.default_port(),
                &[METRICS_PORT_OFFSET, HTTP_PORT_OFFSET],
            )?,
        ))
    };
    instances.iter().map(choose).collect()
}

fn drain(child: &mut Child) -> Result<()> {
    if child.try_wait()?.is_none() {
        child.signal(Signal::SIGTERM)?;
    }
    Ok(())
}

/// Waits at most `grace` for the end. Does not block the runtime, because a service that drains
/// waits until its clients, which may run here, have closed their connections.
async fn wait_or_kill(child: &mut Child, grace: Duration) -> Result<()> {
    let deadline = Instant::now() + grace;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            child.kill_group()?;
            return Ok(());
        }
        tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
    }
    Ok(())
}

fn waiting(unhealthy: &[ServiceStatus]) -> String {
    let reason = |status: &ServiceStatus| format!("{}: {}", status.service, status.waiting_for);
    let reasons: Vec<String> = unhealthy.iter().map(reason).collect();
    reasons.join("; ")
}

fn last_line(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("its log is empty").to_owned()
}
