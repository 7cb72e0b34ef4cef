//! Readiness of the database: reachable, new enough, migrated and large enough.

use std::pin::Pin;

use crate::config::CONNECTIONS_RESERVED;
use crate::error::StoreError;
use crate::migrate::MIGRATIONS;
use crate::store::Store;

/// The oldest server version whose row security, partitions and `FOR UPDATE` behave as we rely on.
const SERVER_VERSION_MIN: i32 = 150_000;

/// The missing condition and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    #[error("Postgres at database.url cannot be reached: {0}")]
    Unreachable(String),
    #[error(
        "Postgres refuses the login ({0}): run `servo-standalone migrate`, and give it database.password"
    )]
    LoginRefused(String),
    #[error("Postgres is version {found}, and 15 or newer is needed: upgrade the server")]
    TooOld { found: String },
    #[error(
        "the schema is at version {found} and this binary needs {needed}: run `servo-standalone migrate`"
    )]
    NotMigrated { found: i32, needed: i32 },
    #[error(
        "migration {0} was applied with another text than this binary contains: deploy binaries of one build"
    )]
    OtherHistory(String),
    #[error(
        "database.fleet_connections is {fleet}, more than Postgres allows ({max} connections, \
         {CONNECTIONS_RESERVED} of them reserved): lower the pools or raise max_connections"
    )]
    FleetTooLarge { fleet: u32, max: u32 },
    #[error(
        "database.requests_connections and loops_connections are {own} together, above database.fleet_connections \
         ({fleet}): lower the pools or raise the fleet's budget"
    )]
    PoolsTooLarge { own: u32, fleet: u32 },
}

#[derive(sqlx::FromRow)]
struct ServerFacts {
    version: i32,
    version_name: String,
    max_connections: i32,
    has_migrations: bool,
}

impl Store {
    /// Returns [`Store::check`] as a closure that can be called repeatedly.
    pub fn readiness(
        &self,
    ) -> impl FnMut() -> Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send>> + Send + use<>
    {
        let store = self.clone();
        move || {
            let store = store.clone();
            Box::pin(async move { store.check().await })
        }
    }

    /// Checks whether this service can use this database. The error names the reason and the
    /// remedy.
    pub async fn check(&self) -> Result<(), NotReady> {
        let facts = self.server_facts().await.map_err(not_ready)?;
        if facts.version < SERVER_VERSION_MIN {
            return Err(NotReady::TooOld {
                found: facts.version_name,
            });
        }
        self.check_budget(facts.max_connections)?;
        let needed = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
        if !facts.has_migrations {
            return Err(NotReady::NotMigrated { found: 0, needed });
        }
        let applied = self.applied().await.map_err(not_ready)?;
        check_history(&applied, needed)
    }

    fn check_budget(&self, max_connections: i32) -> Result<(), NotReady> {
        let (fleet, own) = (self.config().fleet_connections, self.config().connections());
        let max = u32::try_from(max_connections).unwrap_or(0);
        if fleet > max.saturating_sub(CONNECTIONS_RESERVED) {
            return Err(NotReady::FleetTooLarge { fleet, max });
        }
        if own > fleet {
            return Err(NotReady::PoolsTooLarge { own, fleet });
        }
        Ok(())
    }

    async fn server_facts(&self) -> Result<ServerFacts, StoreError> {
        let mut tx = self.loops().begin().await?;
        tx.one(sqlx::query(include_str!("sql/facts.sql"))).await
    }

    async fn applied(&self) -> Result<Vec<(i32, Vec<u8>)>, StoreError> {
        let mut tx = self.loops().begin().await?;
        tx.all(sqlx::query(include_str!("sql/applied.sql"))).await
    }
}

fn not_ready(error: StoreError) -> NotReady {
    match error {
        StoreError::Refused(why) => NotReady::LoginRefused(why),
        StoreError::Unavailable(why) => NotReady::Unreachable(why),
        other => NotReady::Unreachable(other.to_string()),
    }
}

/// A newer schema is accepted, because migrations only add until no binary of the older version
/// runs.
fn check_history(applied: &[(i32, Vec<u8>)], needed: i32) -> Result<(), NotReady> {
    let found = applied.last().map_or(0, |(number, _)| *number);
    if found < needed {
        return Err(NotReady::NotMigrated { found, needed });
    }
    let edited = MIGRATIONS
        .iter()
        .zip(applied)
        .find(|(ours, (_, checksum))| ours.checksum() != checksum[..]);
    match edited {
        Some((migration, _)) => Err(NotReady::OtherHistory(migration.name.to_owned())),
        None => Ok(()),
    }
}
