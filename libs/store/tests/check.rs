//! The errors of a database that is not ready, and the state that a service discards after a
//! restart of its database.

#![cfg(test)]

mod common;

use common::{
    OwnPostgres, admin, at, config, connect, empty_database, leases, shard, store, tenant,
};
use servo_local::{PostgresOptions, TestDatabase, free_port};
use servo_model::Service;
use servo_store::migrate::MIGRATIONS;
use servo_store::{DatabaseConfig, NotReady, Store, StoreError, query};

fn message(store: Result<(), NotReady>) -> String {
    store.unwrap_err().to_string()
}

#[tokio::test]
async fn migrated_database_is_ready_for_every_service() {
    let database = TestDatabase::create().await.unwrap();
    for service in Service::ALL
        .into_iter()
        .filter(|service| service.has_store())
    {
        store(&database, service).check().await.unwrap();
    }
}

#[tokio::test]
async fn unreachable_database_is_reported() {
    let url = format!("postgres://127.0.0.1:{}/servo", free_port().unwrap());
    let mut config = DatabaseConfig::new(url, "secret");
    config.acquire_timeout_ms = 100;
    let error = message(
        Store::connect(Service::Quota, &config)
            .unwrap()
            .check()
            .await,
    );
    assert!(
        error.starts_with("Postgres at database.url cannot be reached"),
        "{error}"
    );
}

#[tokio::test]
async fn wrong_password_and_missing_schema_have_different_errors() {
    let database = TestDatabase::create().await.unwrap();
    let config = DatabaseConfig::new(database.service_url(), "wrong");
    let login_error = message(
        Store::connect(Service::Quota, &config)
            .unwrap()
            .check()
            .await,
    );
    assert!(
        login_error.contains("password authentication failed") && login_error.contains("migrate"),
        "{login_error}"
    );
    let url = empty_database(&database).await;
    let (_, server) = url.split_once('@').unwrap();
    let config = DatabaseConfig::new(
        format!("postgres://{server}"),
        database.password().to_owned(),
    );
    let schema_error = message(
        Store::connect(Service::Quota, &config)
            .unwrap()
            .check()
            .await,
    );
    let expected = format!(
        "the schema is at version 0 and this binary needs {}",
        MIGRATIONS.len()
    );
    assert!(schema_error.starts_with(&expected), "{schema_error}");
}

#[tokio::test]
async fn older_and_edited_schemas_are_refused_and_newer_ones_accepted() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Quota);
    let mut admin = admin(&database).await;
    let mut alter = async |statement| {
        sqlx::raw_sql(statement).execute(&mut admin).await.unwrap();
    };
    alter("INSERT INTO store.migrations VALUES (9999, 'later', sha256('x'))").await;
    store.check().await.unwrap();
    alter("UPDATE store.migrations SET checksum = sha256('x') WHERE number = 2").await;
    assert!(
        message(store.check().await).contains("0002_ledger_tables was applied with another text")
    );
    alter("DELETE FROM store.migrations WHERE number > 5").await;
    assert_eq!(
        store.check().await.unwrap_err(),
        NotReady::NotMigrated {
            found: 5,
            needed: i32::try_from(MIGRATIONS.len()).unwrap()
        }
    );
}

/// F20: the sum of all pools compared with the connection limit of Postgres.
#[tokio::test]
async fn f20_pools_over_budget_are_refused() {
    let database = TestDatabase::create().await.unwrap();
    let mut config = config(&database);
    config.fleet_connections = 7;
    let pools_error = message(
        Store::connect(Service::Quota, &config)
            .unwrap()
            .check()
            .await,
    );
    assert!(
        pools_error.contains("are 8 together, above database.fleet_connections (7)"),
        "{pools_error}"
    );
    config.fleet_connections = 100_000;
    let fleet_error = message(
        Store::connect(Service::Quota, &config)
            .unwrap()
            .check()
            .await,
    );
    assert!(
        fleet_error.contains("fleet_connections is 100000, more than Postgres allows"),
        "{fleet_error}"
    );
}

#[tokio::test]
async fn f20_an_exhausted_pool_answers_unavailable() {
    let database = TestDatabase::create().await.unwrap();
    let mut config = config(&database);
    config.requests_connections = 1;
    config.acquire_timeout_ms = 50;
    let store = Store::connect(Service::Quota, &config).unwrap();
    let held = store.requests().begin(&tenant("acme")).await.unwrap();
    let refused = store.requests().begin(&tenant("acme")).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Unavailable(why) if why.contains("acquire_timeout_ms")),
        "{refused}"
    );
    drop(held);
    store.requests().begin(&tenant("acme")).await.unwrap();
}

#[tokio::test]
async fn transaction_with_a_failed_statement_cannot_be_committed() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Quota);
    let mut tx = store.requests().begin(&tenant("acme")).await.unwrap();
    let insert = query("INSERT INTO quota.quotas VALUES ('acme', 1, '', clock_timestamp())");
    tx.execute(insert).await.unwrap();
    tx.execute(query("SELECT 1 / 0")).await.unwrap_err();
    assert!(matches!(
        tx.commit().await.unwrap_err(),
        StoreError::Aborted
    ));
}

#[tokio::test]
async fn lost_connection_begins_a_new_generation_and_ends_its_leases() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let anna = leases(&store, "anna");
    let lease = anna.acquire(&[shard(0)], 1).await.unwrap().remove(0);
    let before = store.generation();
    let mut watch = store.generations();
    let mut tx = store.loops().begin().await.unwrap();
    let (pid,): (i32,) = tx.one(query("SELECT pg_backend_pid()")).await.unwrap();
    sqlx::query("SELECT pg_terminate_backend($1, 5000)")
        .bind(pid)
        .execute(&mut admin(&database).await)
        .await
        .unwrap();
    assert!(matches!(
        tx.execute(query("SELECT 1")).await.unwrap_err(),
        StoreError::Unavailable(_)
    ));
    watch.changed().await.unwrap();
    assert_ne!(store.generation(), before);
    let refused = store.loops().fence(&lease, at(0), at(0)).await.unwrap_err();
    assert!(matches!(refused, StoreError::LeaseLost(_)), "{refused}");
    anna.release(lease).await.unwrap();
    let lease = anna.acquire(&[shard(0)], 1).await.unwrap().remove(0);
    store.loops().fence(&lease, at(0), at(0)).await.unwrap();
}

/// Idle connections break unnoticed with the server; the next transaction works, and cached state
/// is invalid.
#[tokio::test]
async fn restart_of_postgres_is_detected_by_the_next_transaction() {
    let mut own = OwnPostgres::start(PostgresOptions::without_durability()).await;
    let store = Store::connect(Service::Scheduler, &own.config()).unwrap();
    store.requests().begin(&tenant("acme")).await.unwrap();
    store.loops().begin().await.unwrap();
    let before = store.generation();
    own = tokio::task::spawn_blocking(move || {
        own.postgres.kill_9().unwrap();
        own.postgres.restart().unwrap();
        own
    })
    .await
    .unwrap();
    store.requests().begin(&tenant("acme")).await.unwrap();
    assert_ne!(store.generation(), before);
    connect(&own.postgres.admin_url()).await;
}
