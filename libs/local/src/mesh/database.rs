//! The database of the mesh: a private cluster, or an existing Postgres.

use std::path::Path;

use anyhow::{Context, Result};
use sqlx::{Connection, PgConnection};

use crate::postgres::{Postgres, PostgresOptions};
use crate::secret::load_or_create_secret;

const NAME: &str = "servo";

pub(super) struct Database {
    admin_url: String,
    service_url: String,
    role_password: String,
    cluster: Option<Postgres>,
}

impl Database {
    pub(super) fn open(
        dir: &Path,
        existing: Option<&str>,
        options: PostgresOptions,
    ) -> Result<Database> {
        match existing {
            Some(url) => Database::existing(url, dir),
            None => Database::private(dir, options),
        }
    }

    /// Creates the database in a private cluster, and migrates its schema.
    pub(super) async fn migrate(&self) -> Result<()> {
        if let Some(cluster) = &self.cluster {
            create_database(&cluster.admin_url())
                .await
                .context("create the database")?;
        }
        use servo_store::migrate::{MigrateError, migrate};
        let migrated = migrate(&self.admin_url, &self.role_password).await;
        let private = self.cluster.is_some();
        migrated.map(drop).map_err(|error| match error {
            MigrateError::Edited(_) | MigrateError::Newer { .. } if private => anyhow::Error::from(
                error,
            )
            .context(
                "the data kept here was made by another version of Servo; `make clean` removes it",
            ),
            other => other.into(),
        })
    }

    /// The URL and password that services are configured with.
    pub(super) fn for_services(&self) -> (&str, &str) {
        (&self.service_url, &self.role_password)
    }

    pub(super) fn admin_url(&self) -> &str {
        &self.admin_url
    }

    pub(super) fn private_cluster(&mut self) -> Option<&mut Postgres> {
        self.cluster.as_mut()
    }

    fn private(dir: &Path, options: PostgresOptions) -> Result<Database> {
        let cluster = Postgres::start_with(&dir.join("postgres"), options)?;
        Ok(Database {
            admin_url: cluster.admin_url_of(NAME),
            service_url: format!("postgres://127.0.0.1:{}/{NAME}", cluster.port()),
            role_password: cluster.password().to_owned(),
            cluster: Some(cluster),
        })
    }

    fn existing(url: &str, dir: &Path) -> Result<Database> {
        let form = "SERVO_DATABASE_URL must be postgres://user:password@host:port/database";
        let (scheme, rest) = url.split_once("://").context(form)?;
        let (_, place) = rest.rsplit_once('@').context(form)?;
        Ok(Database {
            admin_url: url.to_owned(),
            service_url: format!("{scheme}://{place}"),
            role_password: load_or_create_secret(&dir.join("role-password"), "")?,
            cluster: None,
        })
    }
}

async fn create_database(admin_url: &str) -> Result<()> {
    let mut connection = PgConnection::connect(admin_url).await?;
    let exists: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
            .bind(NAME)
            .fetch_one(&mut connection)
            .await?;
    if !exists {
        sqlx::query("CREATE DATABASE servo")
            .execute(&mut connection)
            .await?;
    }
    connection.close().await?;
    Ok(())
}
