//! Helpers of the store's tests.
#![allow(dead_code, reason = "every test file uses another part of it")]

use std::path::PathBuf;

use servo_local::{Postgres, PostgresOptions, TestDatabase};
use servo_model::{EventType, Position, Service, ShardId, Stream, TenantId};
use servo_store::{DatabaseConfig, LeaseTtl, Leases, NewEvent, Store};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use uuid::Uuid;

/// The full count in `make sim` and `make chaos`, the sample in `make test`.
pub(crate) fn count(full: usize, sample: usize) -> usize {
    assert!(
        sample * 100 >= full,
        "the sample must be at least 1 % of the count"
    );
    if is_full() { full } else { sample }
}

pub(crate) fn is_full() -> bool {
    std::env::var_os("SERVO_FULL").is_some()
}

pub(crate) fn config(database: &TestDatabase) -> DatabaseConfig {
    DatabaseConfig::new(database.service_url(), database.password().to_owned())
}

pub(crate) fn store(database: &TestDatabase, service: Service) -> Store {
    Store::connect(service, &config(database)).unwrap()
}

pub(crate) async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.unwrap()
}

pub(crate) async fn admin(database: &TestDatabase) -> PgConnection {
    connect(&database.admin_url()).await
}

pub(crate) fn new_id() -> Uuid {
    Uuid::from_u128(ulid::Ulid::generate().into())
}

/// A shard of the execution stream.
pub(crate) fn shard(number: u32) -> ShardId {
    Stream::Execution.shard(number).unwrap()
}

pub(crate) fn shards<const N: usize>(numbers: [u32; N]) -> [ShardId; N] {
    numbers.map(shard)
}

pub(crate) fn at(position: u32) -> Position {
    Position::START.plus(position)
}

pub(crate) fn tenant(name: &str) -> TenantId {
    name.parse().unwrap()
}

/// An event with a unique body.
pub(crate) fn event(kind: EventType, shard: ShardId, tenant: &str, key: &str) -> NewEvent {
    NewEvent {
        event_id: new_id(),
        kind,
        version: 1,
        shard,
        tenant: tenant.parse().unwrap(),
        workspace: "main".to_owned(),
        idempotency_key: key.to_owned(),
        correlation_id: Some(new_id()),
        causation_id: None,
        payload: format!("payload of {key}").into_bytes(),
    }
}

pub(crate) fn leases(store: &Store, holder: &str) -> Leases {
    let ttl = LeaseTtl::new(LeaseTtl::MIN).unwrap();
    Leases::new(
        store.loops(),
        Stream::Execution,
        holder,
        "127.0.0.1:7412",
        ttl,
    )
}

/// A separate cluster with one migrated database, for tests that kill it, stop in it or need
/// durability.
pub(crate) struct OwnPostgres {
    pub(crate) postgres: Postgres,
    _dir: TempDir,
}

impl OwnPostgres {
    pub(crate) const DATABASE: &'static str = "postgres";

    pub(crate) async fn start(options: PostgresOptions) -> OwnPostgres {
        let own = OwnPostgres::bare(options).await;
        servo_store::migrate::migrate(&own.postgres.admin_url(), own.postgres.password())
            .await
            .unwrap();
        own
    }

    /// A cluster without our schema.
    pub(crate) async fn bare(options: PostgresOptions) -> OwnPostgres {
        let dir = tempfile::tempdir().unwrap();
        let path: PathBuf = dir.path().join("cluster");
        let started = tokio::task::spawn_blocking(move || Postgres::start_with(&path, options));
        OwnPostgres {
            postgres: started.await.unwrap().unwrap(),
            _dir: dir,
        }
    }

    pub(crate) fn config(&self) -> DatabaseConfig {
        self.config_at(self.postgres.port())
    }

    /// The configuration for a proxy that listens on another port.
    pub(crate) fn config_at(&self, port: u16) -> DatabaseConfig {
        DatabaseConfig::new(self.url_at(port), self.postgres.password().to_owned())
    }

    pub(crate) fn url(&self) -> String {
        self.url_at(self.postgres.port())
    }

    fn url_at(&self, port: u16) -> String {
        format!("postgres://127.0.0.1:{port}/{}", Self::DATABASE)
    }
}

/// Creates an unmigrated database in the same cluster and returns the administrator's URL.
pub(crate) async fn empty_database(neighbour: &TestDatabase) -> String {
    let name = format!("servo_empty_{}", new_id().simple());
    let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
    sqlx::raw_sql(create)
        .execute(&mut admin(neighbour).await)
        .await
        .unwrap();
    let url = neighbour.admin_url();
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}
