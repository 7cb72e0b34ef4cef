//! Is the database there, new enough, migrated, and large enough for us?

use std::pin::Pin;

use crate::config::CONNECTIONS_RESERVED;
use crate::error::StoreError;
use crate::migrate::MIGRATIONS;
use crate::store::Store;

/// The oldest server whose row security, partitions and `FOR UPDATE` behave as we rely on.
const SERVER_VERSION_MIN: i32 = 150_000;

/// What is missing, and what to do about it.
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
        "migration {0} ran with another text than this binary holds: deploy binaries of one build"
    )]
    OtherHistory(String),
    #[error(
        "database.fleet_connections is {fleet}, above what Postgres has to give ({max} connections, \
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
struct Facts {
    version: i32,
    version_name: String,
    max_connections: i32,
    has_migrations: bool,
}

impl Store {
    /// [`Store::check`] as something to be asked again and again.
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

    /// Whether this service can work on this database; if not, why not and what to do.
    pub async fn check(&self) -> Result<(), NotReady> {
        let facts = self.facts().await.map_err(not_reached)?;
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
        let applied = self.applied().await.map_err(not_reached)?;
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

    async fn facts(&self) -> Result<Facts, StoreError> {
        let mut tx = self.loops().begin().await?;
        tx.one(sqlx::query(include_str!("sql/facts.sql"))).await
    }

    async fn applied(&self) -> Result<Vec<(i32, Vec<u8>)>, StoreError> {
        let mut tx = self.loops().begin().await?;
        tx.all(sqlx::query(include_str!("sql/applied.sql"))).await
    }
}

fn not_reached(error: StoreError) -> NotReady {
    match error {
        StoreError::Refused(why) => NotReady::LoginRefused(why),
        StoreError::Unavailable(why) => NotReady::Unreachable(why),
        other => NotReady::Unreachable(other.to_string()),
    }
}

/// A newer schema is fine: migrations only add until every binary of the older version is gone.
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
