//! A private Postgres: its own directory and port on loopback, never the system's cluster.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::child::{Child, User, command, find_in_path};
use crate::ports::free_port;
use crate::secret::load_or_create_secret;
use crate::unprivileged;

/// The superuser of a private cluster.
const ADMIN: &str = "servo_admin";

/// How long a start may take, including crash recovery after `kill -9`.
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_GRACE: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The settings every private cluster runs with.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", ""),
    ("max_connections", "200"),
    ("shared_buffers", "256MB"),
    ("jit", "off"),
    ("max_wal_size", "4GB"),
    ("max_prepared_transactions", "0"),
    ("password_encryption", "scram-sha-256"),
];

/// The settings that may differ between clusters.
#[derive(Debug, Default, Clone)]
pub struct PostgresOptions {
    /// Extra server settings, which override the defaults.
    pub settings: Vec<(String, String)>,
}

impl PostgresOptions {
    /// For tests that do not need durability: several times faster.
    pub fn without_durability() -> Self {
        PostgresOptions::default()
            .with("fsync", "off")
            .with("synchronous_commit", "off")
            .with("full_page_writes", "off")
            .with("max_connections", "500")
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A running cluster; dropping it stops the server and keeps the data.
#[derive(Debug)]
pub struct Postgres {
    bin: PathBuf,
    dir: PathBuf,
    user: Option<User>,
    options: PostgresOptions,
    password: String,
    port: u16,
    server: Option<Child>,
}

impl Postgres {
    /// Starts the cluster in `dir` and creates it first if it does not exist.
    pub fn start(dir: &Path) -> Result<Postgres> {
        Postgres::start_with(dir, PostgresOptions::default())
    }

    pub fn start_with(dir: &Path, options: PostgresOptions) -> Result<Postgres> {
        let bin = find_binaries()?;
        let user = unprivileged::user()?;
        let dir = unprivileged::prepare_dir(dir, user)?;
        let password = password_of(&dir, user)?;
        let mut postgres = Postgres {
            bin,
            dir,
            user,
            options,
            password,
            port: free_port()?,
            server: None,
        };
        if !postgres.data().join("PG_VERSION").exists() {
            postgres.init()?;
        }
        postgres.launch()?;
        Ok(postgres)
    }

    /// The superuser's URL of the database `postgres`.
    pub fn admin_url(&self) -> String {
        self.admin_url_of("postgres")
    }

    /// The superuser's URL of `database`.
    pub fn admin_url_of(&self, database: &str) -> String {
        format!(
            "postgres://{ADMIN}:{}@127.0.0.1:{}/{database}",
            self.password, self.port
        )
    }

    /// The password of the superuser; the service roles get it too.
    pub fn password(&self) -> &str {
        &self.password
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's log file.
    pub fn log_path(&self) -> PathBuf {
        self.dir.join("postgres.log")
    }

    /// The postmaster's process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    /// The exit status of the server, if it ended without being stopped.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.server.as_mut().map_or(Ok(None), Child::try_wait)?)
    }

    /// `kill -9` of the server, without a checkpoint. The data stays.
    pub fn kill_9(&mut self) -> Result<()> {
        if let Some(mut server) = self.server.take() {
            server.kill_group()?;
        }
        Ok(())
    }

    /// Starts the server again after [`Postgres::kill_9`] or [`Postgres::stop`], on the same port.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.launch()
    }

    /// A fast shutdown: open transactions are rolled back, the data is complete.
    pub fn stop(&mut self) -> Result<()> {
        if let Some(mut server) = self.server.take() {
            server.stop(Signal::SIGINT, STOP_GRACE)?;
        }
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn init(&self) -> Result<()> {
        let password_file = self.dir.join("password");
        let mut initdb = command(&self.bin.join("initdb"), self.user);
        initdb.arg("-D").arg(self.data()).arg("-U").arg(ADMIN);
        initdb.arg(format!("--pwfile={}", password_file.display()));
        initdb.args([
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ]);
        let made = initdb
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .output()
            .context("run initdb")?;
        if !made.status.success() {
            bail!(
                "initdb failed in {}: {}",
                self.dir.display(),
                String::from_utf8_lossy(&made.stderr).trim()
            );
        }
        Ok(())
    }

    /// Retries until the server accepts connections, because after `kill -9` its orphans hold the
    /// shared memory for a moment.
    fn launch(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let mut server = self.spawn()?;
            if self.wait_until_accepting(&mut server, deadline)? {
                self.server = Some(server);
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!(
                    "Postgres did not start within {START_LIMIT:?}: see {}",
                    self.log_path().display()
                );
            }
            std::thread::sleep(POLL_INTERVAL * 10);
        }
    }

    fn spawn(&self) -> Result<Child> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .context("open Postgres log")?;
        let mut server = command(&self.bin.join("postgres"), self.user);
        server
            .arg("-D")
            .arg(self.data())
            .arg("-p")
            .arg(self.port.to_string());
        let own = self
            .options
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in SETTINGS.iter().copied().chain(own) {
            server.arg("-c").arg(format!("{name}={value}"));
        }
        server
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Child::spawn("postgres", server).context("start Postgres")
    }

    /// False when the server exited.
    fn wait_until_accepting(&self, server: &mut Child, deadline: Instant) -> Result<bool> {
        let ready = self.data().join("postmaster.pid");
        while Instant::now() < deadline {
            if server.try_wait()?.is_some() {
                return Ok(false);
            }
            // The last line of the pid file is `ready` once connections are accepted.
            let is_ready = fs::read_to_string(&ready).is_ok_and(|text| {
                text.starts_with(&server.id().to_string()) && text.trim_end().ends_with("ready")
            });
            if is_ready && TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(true);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(false)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// The newest installed Postgres: Debian's directory first, then the PATH.
fn find_binaries() -> Result<PathBuf> {
    let mut debian: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .filter(|(major, bin)| *major >= 15 && bin.join("postgres").is_file())
        .collect();
    debian.sort();
    if let Some((_, bin)) = debian.pop() {
        return Ok(bin);
    }
    find_in_path("postgres")
        .and_then(|path| path.canonicalize().ok()?.parent().map(Path::to_path_buf))
        .context("no Postgres 15 or newer found: install the package `postgresql`, or set SERVO_DATABASE_URL")
}

/// Created on first use; initdb reads it as the user that runs Postgres.
fn password_of(dir: &Path, user: Option<User>) -> Result<String> {
    let path = dir.join("password");
    let password = load_or_create_secret(&path, "")?;
    if let Some(user) = user {
        std::os::unix::fs::chown(&path, Some(user.uid), Some(user.gid))?;
    }
    Ok(password)
}
