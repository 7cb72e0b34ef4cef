//! A whole mesh on one machine: a private Postgres (or one given by URL), certificates, migrations, and the nine
//! services as separate processes over mutual TLS on loopback.

mod config;
mod database;
mod probe;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use servo_model::Service;
use servo_model::service::METRICS_PORT_OFFSET;

use crate::ca::{Ca, Issue};
use crate::child::Child;
use crate::lock::{DirLock, PortsLock};
use crate::ports::FreePorts;
use crate::postgres::Postgres;
use crate::process::{cpu_time, memory_mb};
use crate::secret::kept_secret;
use database::Database;
use probe::Probe;
pub use probe::ServiceStatus;

/// The tenant whose workspaces the API key opens.
pub const TENANT: &str = "demo";

const API_KEY_FILE: &str = "api-key";
const DRAIN_GRACE: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What a mesh is started with.
#[derive(Debug, Clone)]
pub struct MeshOptions {
    /// Everything the mesh keeps: data, certificates, configuration, logs.
    pub dir: PathBuf,
    /// Where the service binaries stand.
    pub binaries: PathBuf,
    /// The URL of an existing Postgres, of a user who may create roles; none starts a private one.
    pub database_url: Option<String>,
}

/// A step of the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Postgres,
    Certificates,
    Migrations,
    Services,
    Healthy,
}

/// A running mesh. Dropping it kills what [`LocalMesh::stop`] would have stopped gently.
pub struct LocalMesh {
    dir: PathBuf,
    binaries: PathBuf,
    ports: BTreeMap<Service, u16>,
    api_key: String,
    run_id_secret: String,
    signing_secret: String,
    probe: Probe,
    services: BTreeMap<Service, Child>,
    database: Database,
    _lock: DirLock,
}

impl LocalMesh {
    /// Starts everything and waits until all nine services are healthy. `done` hears of each step when it is over.
    pub async fn start(options: MeshOptions, mut done: impl FnMut(Step)) -> Result<LocalMesh> {
        fs::create_dir_all(&options.dir).with_context(|| format!("create {}", options.dir.display()))?;
        let dir = options.dir.canonicalize()?;
        let lock = DirLock::take(&dir)?;
        let database = Database::open(&dir, options.database_url.as_deref())?;
        done(Step::Postgres);
        let probe = write_certificates(&dir.join("tls"))?;
        done(Step::Certificates);
        database.migrate().await?;
        done(Step::Migrations);
        let api_key = kept_secret(&dir.join(API_KEY_FILE), "servo_")?;
        let run_id_secret = kept_secret(&dir.join("run-id-secret"), "")?;
        let signing_secret = kept_secret(&dir.join("signing-secret"), "")?;
        let ports_lock =
            tokio::task::spawn_blocking(PortsLock::take).await?.context("wait for free ports")?;
        let (ports, services) = (choose_ports()?, BTreeMap::new());
        let binaries = options.binaries;
        let mut mesh = LocalMesh {
            dir,
            binaries,
            ports,
            api_key,
            run_id_secret,
            signing_secret,
            probe,
            services,
            database,
            _lock: lock,
        };
        for service in Service::ALL {
            config::write(&mesh, service)?;
            mesh.launch(service)?;
        }
        done(Step::Services);
        mesh.wait_until_healthy().await?;
        drop(ports_lock);
        done(Step::Healthy);
        Ok(mesh)
    }

    /// `https://127.0.0.1:7400`
    pub fn address(&self, service: Service) -> String {
        format!("https://127.0.0.1:{}", self.ports[&service])
    }

    pub fn metrics_address(&self, service: Service) -> String {
        format!("http://127.0.0.1:{}/metrics", self.ports[&service] + METRICS_PORT_OFFSET)
    }

    /// Opens every workspace of the tenant [`TENANT`].
    pub fn api_key(&self) -> &str {
        &self.api_key
    }

    /// The file that holds it.
    pub fn api_key_path(&self) -> PathBuf {
        self.dir.join(API_KEY_FILE)
    }

    /// The certificate that clients of the gateway trust.
    pub fn ca_path(&self) -> PathBuf {
        self.dir.join("tls").join("ca.crt")
    }

    pub fn log_path(&self, service: Service) -> PathBuf {
        self.dir.join("logs").join(format!("{service}.log"))
    }

    /// The private Postgres, unless one was given by URL.
    pub fn postgres(&mut self) -> Option<&mut Postgres> {
        self.database.private_cluster()
    }

    /// The process of a service.
    pub fn process(&mut self, service: Service) -> Option<&mut Child> {
        self.services.get_mut(&service)
    }

    /// What each service's process takes of memory, in megabytes.
    pub fn memory(&self) -> Result<Vec<(Service, f64)>> {
        self.services.iter().map(|(service, child)| Ok((*service, memory_mb(child.id())?))).collect()
    }

    /// The CPU time that all services used so far.
    pub fn cpu_time(&self) -> Result<Duration> {
        self.services.values().map(|child| cpu_time(child.id())).sum()
    }

    /// What each service says about itself.
    pub async fn status(&self) -> Vec<ServiceStatus> {
        let asked = Service::ALL.map(|service| self.probe.ask(service, self.address(service)));
        futures::future::join_all(asked).await
    }

    /// Starts the process of a service, for the first time or after it was killed.
    pub fn launch(&mut self, service: Service) -> Result<()> {
        let log_path = self.log_path(service);
        fs::create_dir_all(self.dir.join("logs"))?;
        let log =
            File::options().create(true).append(true).open(&log_path).context("open a service's log")?;
        let program = self.binaries.join(format!("servo-{service}"));
        let mut command = Child::command(&program);
        command.env("SERVO_CONFIG", self.config_path(service));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child =
            Child::spawn(service.name(), command).with_context(|| format!("start {}", program.display()))?;
        self.services.insert(service, child);
        Ok(())
    }

    /// Asks all services to leave, then stops Postgres.
    pub fn stop(mut self) -> Result<()> {
        for child in self.services.values_mut() {
            if child.try_wait()?.is_none() {
                child.signal(Signal::SIGTERM)?;
            }
        }
        for child in self.services.values_mut() {
            child.stop(Signal::SIGTERM, DRAIN_GRACE)?;
        }
        self.postgres().map_or(Ok(()), Postgres::stop)
    }

    /// Looks until all are healthy; a service that ended by itself ends the wait with its last words.
    pub async fn wait_until_healthy(&mut self) -> Result<()> {
        loop {
            self.check_processes()?;
            if self.status().await.iter().all(|status| status.healthy) {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits, for ever if all goes well, and fails with the last words of a service that ended by itself.
    pub async fn until_one_ends(&mut self) -> Result<()> {
        loop {
            self.check_processes()?;
            tokio::time::sleep(LOOK_AGAIN * 10).await;
        }
    }

    fn check_processes(&mut self) -> Result<()> {
        for (service, child) in &mut self.services {
            if let Some(status) = child.try_wait()? {
                let log = self.dir.join("logs").join(format!("{service}.log"));
                bail!("{service} ended with {status}: {} ({})", last_line(&log), log.display());
            }
        }
        Ok(())
    }

    fn config_path(&self, service: Service) -> PathBuf {
        self.dir.join("config").join(format!("{service}.toml"))
    }
}

/// New certificates at every start: they are cheap, and nobody has to think of their end.
fn write_certificates(dir: &Path) -> Result<Probe> {
    let ca = Ca::load_or_create(dir)?;
    for service in Service::ALL {
        ca.issue(&Issue::identity(&service.spiffe_id()))?.write(dir, service.name())?;
    }
    Probe::new(dir)
}

fn choose_ports() -> Result<BTreeMap<Service, u16>> {
    let mut free = FreePorts::default();
    let choose = |service: Service| Ok((service, free.pair(service.default_port(), METRICS_PORT_OFFSET)?));
    Service::ALL.into_iter().map(choose).collect()
}

fn last_line(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("it said nothing").to_owned()
}
