//! A fresh, migrated database per test, cloned from a template in a shared cluster.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};
use tokio::sync::{Mutex, OnceCell};

use crate::postgres::{Postgres, PostgresOptions};
use crate::secret::random_word;

/// The environment variable with the URL of a superuser of the cluster that tests share.
const CLUSTER_VARIABLE: &str = "SERVO_TEST_DATABASE_URL";
const TEMPLATE: &str = "servo_template";
/// An arbitrary key; the lock serializes the creation of the template.
const TEMPLATE_LOCK: i64 = 7_400_001;

/// A database for one test. It is not dropped, because the cluster is deleted after the tests.
#[derive(Debug, Clone)]
pub struct TestDatabase {
    admin: PgConnectOptions,
    password: String,
    /// Set only if this process had to start a cluster itself.
    _cluster: Option<Arc<PrivateCluster>>,
}

impl TestDatabase {
    /// Creates a migrated database in the shared cluster, or in a cluster of this process if there
    /// is none.
    pub async fn create() -> Result<TestDatabase> {
        let (url, cluster) = cluster_url().await?;
        let server: PgConnectOptions = url
            .parse()
            .with_context(|| format!("read {CLUSTER_VARIABLE}"))?;
        let password = password_in(&url)?;
        let mut connection = server
            .connect()
            .await
            .context("connect to the test cluster")?;
        ensure_template(&mut connection, &server, &password).await?;
        let name = format!("servo_test_{}", random_suffix());
        run(
            &mut connection,
            format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}"),
        )
        .await?;
        connection.close().await?;
        Ok(TestDatabase {
            admin: server.database(&name),
            password,
            _cluster: cluster,
        })
    }

    /// The superuser's URL.
    pub fn admin_url(&self) -> String {
        self.url_of(self.admin.get_username())
    }

    /// The URL a service is configured with; it names no user.
    pub fn service_url(&self) -> String {
        format!(
            "postgres://{}:{}/{}",
            self.admin.get_host(),
            self.admin.get_port(),
            self.name()
        )
    }

    /// The URL of one role.
    pub fn url_of(&self, role: &str) -> String {
        let (host, port) = (self.admin.get_host(), self.admin.get_port());
        format!(
            "postgres://{role}:{}@{host}:{port}/{}",
            self.password,
            self.name()
        )
    }

    /// The password of the service roles.
    pub fn password(&self) -> &str {
        &self.password
    }

    fn name(&self) -> &str {
        self.admin.get_database().unwrap_or(TEMPLATE)
    }
}

#[derive(Debug)]
struct PrivateCluster {
    postgres: Mutex<Postgres>,
    dir: PathBuf,
}

impl Drop for PrivateCluster {
    fn drop(&mut self) {
        let _ = self.postgres.get_mut().stop();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

async fn cluster_url() -> Result<(String, Option<Arc<PrivateCluster>>)> {
    if let Ok(url) = std::env::var(CLUSTER_VARIABLE) {
        return Ok((url, None));
    }
    // The databases keep the cluster alive; the next test of this process uses it or starts another
    // one.
    static SHARED: OnceCell<Mutex<std::sync::Weak<PrivateCluster>>> = OnceCell::const_new();
    let shared = SHARED
        .get_or_init(|| async { Mutex::new(std::sync::Weak::new()) })
        .await;
    let mut weak = shared.lock().await;
    let cluster = match weak.upgrade() {
        Some(cluster) => cluster,
        None => Arc::new(tokio::task::spawn_blocking(start_private_cluster).await??),
    };
    *weak = Arc::downgrade(&cluster);
    let url = cluster.postgres.lock().await.admin_url();
    Ok((url, Some(cluster)))
}

fn start_private_cluster() -> Result<PrivateCluster> {
    let dir = std::env::temp_dir().join(format!("servo-test-{}", random_suffix()));
    let postgres = Postgres::start_with(&dir, PostgresOptions::without_durability())?;
    Ok(PrivateCluster {
        postgres: Mutex::new(postgres),
        dir,
    })
}

async fn ensure_template(
    connection: &mut PgConnection,
    server: &PgConnectOptions,
    password: &str,
) -> Result<()> {
    sqlx::query("SELECT pg_advisory_lock($1)")
        .bind(TEMPLATE_LOCK)
        .execute(&mut *connection)
        .await?;
    let made = make_template_if_missing(connection, server, password).await;
    sqlx::query("SELECT pg_advisory_unlock($1)")
        .bind(TEMPLATE_LOCK)
        .execute(&mut *connection)
        .await?;
    made
}

async fn make_template_if_missing(
    connection: &mut PgConnection,
    server: &PgConnectOptions,
    password: &str,
) -> Result<()> {
    let exists: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
            .bind(TEMPLATE)
            .fetch_one(&mut *connection)
            .await?;
    if exists {
        return Ok(());
    }
    let draft = format!("{TEMPLATE}_draft");
    run(connection, format!("DROP DATABASE IF EXISTS {draft}")).await?;
    run(connection, format!("CREATE DATABASE {draft}")).await?;
    let url = format!(
        "postgres://{}:{password}@{}:{}/{draft}",
        server.get_username(),
        server.get_host(),
        server.get_port()
    );
    servo_store::migrate::migrate(&url, password)
        .await
        .context("migrate the template database")?;
    // The name appears only once the template is complete.
    run(
        connection,
        format!("ALTER DATABASE {draft} RENAME TO {TEMPLATE}"),
    )
    .await
}

/// Runs a statement without parameters; the names in it are safe constants.
async fn run(connection: &mut PgConnection, sql: String) -> Result<()> {
    sqlx::query(AssertSqlSafe(sql)).execute(connection).await?;
    Ok(())
}

fn password_in(url: &str) -> Result<String> {
    let after_user = url
        .split("://")
        .nth(1)
        .and_then(|rest| rest.split('@').next());
    let password = after_user
        .and_then(|user| user.split_once(':'))
        .map(|(_, password)| password.to_owned());
    password.with_context(|| {
        format!("{CLUSTER_VARIABLE} must be postgres://user:password@host:port/database")
    })
}

fn random_suffix() -> String {
    random_word(12).to_ascii_lowercase()
}
