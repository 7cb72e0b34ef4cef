//! Brings a database to the schema, roles, grants and policies of this binary.
//!
//! Safe to run repeatedly and concurrently: every step is a transaction that first takes a lock,
//! which ends with it, and then checks what is left to do. A step that does not get its lock in
//! time rolls back and retries, so that a migration never waits behind a long transaction while all
//! other queries wait behind the migration.

mod grants;
mod list;
mod roles;
mod rows;
mod scram;

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Postgres, Transaction};

use crate::error::StoreError;
use crate::ownership::schemas;

pub use list::{MIGRATIONS, Migration};

/// Partitions are created this many days ahead; the default partition receives later events.
const PARTITION_DAYS_AHEAD: i32 = 14;
const TRIES_MAX: u32 = 10;
const RETRY_PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("the admin URL is not a Postgres URL: {0}")]
    BadUrl(String),
    #[error("the role password must be 1 to 128 printable ASCII characters without spaces")]
    BadPassword,
    #[error(
        "migration {0} was edited after it ran: restore its text and put the change into a new migration"
    )]
    Edited(String),
    #[error(
        "the schema is at version {found}, newer than this binary ({known}): migrate with the newer binary"
    )]
    Newer { found: i32, known: i32 },
    #[error("migration {name}: {error}")]
    Failed {
        name: &'static str,
        error: sqlx::Error,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for MigrateError {
    fn from(error: sqlx::Error) -> Self {
        MigrateError::Store(error.into())
    }
}

/// The result of a migration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MigrationReport {
    /// The migrations that this call applied; concurrent calls may have applied others.
    pub applied: Vec<&'static str>,
    /// The current version of the schema.
    pub version: usize,
}

/// Migrates the database at `admin_url`, as a role that may create roles, and sets the password of
/// every login role to `role_password`.
pub async fn migrate(
    admin_url: &str,
    role_password: &str,
) -> Result<MigrationReport, MigrateError> {
    check_password(role_password)?;
    let options: PgConnectOptions = admin_url
        .parse()
        .map_err(|error: sqlx::Error| MigrateError::BadUrl(error.to_string()))?;
    let mut connection = options.connect().await?;
    roles::ensure(&mut connection, role_password).await?;
    let mut report = MigrationReport {
        applied: Vec::new(),
        version: MIGRATIONS.len(),
    };
    while let Some(name) = run_with_retries(&mut connection, Step::Next).await? {
        report.applied.push(name);
    }
    run_with_retries(&mut connection, Step::Finish).await?;
    connection.close().await?;
    Ok(report)
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Applies the first missing migration and returns its name.
    Next,
    /// Writes rows derived from the model, grants, policies, partitions.
    Finish,
}

async fn run_with_retries(
    connection: &mut PgConnection,
    step: Step,
) -> Result<Option<&'static str>, MigrateError> {
    let mut tries = 1;
    loop {
        match run_step(connection, step).await {
            Err(MigrateError::Store(StoreError::Raced(why))) if tries < TRIES_MAX => {
                tracing::info!(why, tries, "waiting for a lock");
                tries += 1;
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

async fn run_step(
    connection: &mut PgConnection,
    step: Step,
) -> Result<Option<&'static str>, MigrateError> {
    let mut tx = begin_exclusive(connection).await?;
    let done = match step {
        Step::Next => apply_next(&mut tx).await?,
        Step::Finish => {
            rows::sync(&mut tx).await?;
            grants::apply(&mut tx).await?;
            sqlx::query(include_str!("../sql/make_partitions.sql"))
                .bind(PARTITION_DAYS_AHEAD)
                .execute(&mut *tx)
                .await?;
            None
        }
    };
    tx.commit().await?;
    Ok(done)
}

/// Begins a transaction that excludes other migrations, as the owner of all tables.
async fn begin_exclusive(
    connection: &mut PgConnection,
) -> Result<Transaction<'_, Postgres>, MigrateError> {
    let mut tx = connection.begin().await?;
    sqlx::raw_sql(include_str!("../sql/migrate_lock.sql"))
        .execute(&mut *tx)
        .await?;
    for schema in schemas() {
        let create = format!("CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION servo_owner");
        sqlx::raw_sql(AssertSqlSafe(create))
            .execute(&mut *tx)
            .await?;
    }
    sqlx::raw_sql(include_str!("../sql/become_owner.sql"))
        .execute(&mut *tx)
        .await?;
    Ok(tx)
}

async fn apply_next(tx: &mut PgConnection) -> Result<Option<&'static str>, MigrateError> {
    let applied = applied(tx).await?;
    check_history(&applied)?;
    let Some(migration) = MIGRATIONS.get(applied.len()) else {
        return Ok(None);
    };
    let run = sqlx::raw_sql(migration.sql).execute(&mut *tx).await;
    run.map_err(|error| match StoreError::from(error) {
        StoreError::Database(error) => MigrateError::Failed {
            name: migration.name,
            error,
        },
        other => MigrateError::Store(other),
    })?;
    sqlx::query(include_str!("../sql/note_migration.sql"))
        .bind(number(applied.len() + 1))
        .bind(migration.name)
        .bind(migration.checksum())
        .execute(tx)
        .await?;
    Ok(Some(migration.name))
}

async fn applied(tx: &mut PgConnection) -> Result<Vec<(i32, Vec<u8>)>, MigrateError> {
    let exists: bool = sqlx::query_scalar(include_str!("../sql/migrations_begun.sql"))
        .fetch_one(&mut *tx)
        .await?;
    if !exists {
        return Ok(Vec::new());
    }
    Ok(sqlx::query_as(include_str!("../sql/applied.sql"))
        .fetch_all(tx)
        .await?)
}

fn check_history(applied: &[(i32, Vec<u8>)]) -> Result<(), MigrateError> {
    if applied.len() > MIGRATIONS.len() {
        return Err(MigrateError::Newer {
            found: number(applied.len()),
            known: number(MIGRATIONS.len()),
        });
    }
    let edited = MIGRATIONS
        .iter()
        .zip(applied)
        .find(|(ours, (_, checksum))| ours.checksum() != checksum[..]);
    match edited {
        Some((migration, _)) => Err(MigrateError::Edited(migration.name.to_owned())),
        None => Ok(()),
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn check_password(password: &str) -> Result<(), MigrateError> {
    let printable = password.bytes().all(|byte| byte.is_ascii_graphic());
    if printable && (1..=128).contains(&password.len()) {
        Ok(())
    } else {
        Err(MigrateError::BadPassword)
    }
}
