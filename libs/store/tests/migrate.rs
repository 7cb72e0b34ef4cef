//! Migrations: repeated, concurrent, without superuser, and refused after an edit.

#![cfg(test)]

mod common;

use common::{OwnPostgres, admin, connect, empty_database};
use futures::future::join_all;
use servo_local::{PostgresOptions, TestDatabase};
use servo_store::migrate::{MIGRATIONS, MigrateError, migrate};
use servo_store::ownership::Role;

#[tokio::test]
async fn second_run_applies_nothing() {
    let database = TestDatabase::create().await.unwrap();
    let report = migrate(&database.admin_url(), database.password())
        .await
        .unwrap();
    assert_eq!(report.applied, Vec::<&str>::new());
    assert_eq!(report.version, MIGRATIONS.len());
}

#[tokio::test]
async fn concurrent_runs_apply_each_migration_once() {
    let neighbour = TestDatabase::create().await.unwrap();
    let url = empty_database(&neighbour).await;
    let reports = join_all((0..4).map(|_| migrate(&url, neighbour.password()))).await;
    let mut applied: Vec<&str> = reports
        .into_iter()
        .flat_map(|report| report.unwrap().applied)
        .collect();
    applied.sort_unstable();
    let all: Vec<&str> = MIGRATIONS.iter().map(|migration| migration.name).collect();
    assert_eq!(applied, all);
}

/// Roles belong to the cluster, so these migrations conflict although their databases differ.
#[tokio::test]
async fn concurrent_migrations_of_databases_share_the_roles() {
    let neighbour = TestDatabase::create().await.unwrap();
    let urls = join_all((0..4).map(|_| empty_database(&neighbour))).await;
    for report in join_all(urls.iter().map(|url| migrate(url, neighbour.password()))).await {
        assert_eq!(report.unwrap().applied.len(), MIGRATIONS.len());
    }
}

#[tokio::test]
async fn edited_migration_is_refused() {
    let database = TestDatabase::create().await.unwrap();
    sqlx::query("UPDATE store.migrations SET checksum = sha256('edited') WHERE number = 3")
        .execute(&mut admin(&database).await)
        .await
        .unwrap();
    let refused = migrate(&database.admin_url(), database.password())
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, MigrateError::Edited(name) if name == MIGRATIONS[2].name),
        "{refused}"
    );
}

#[tokio::test]
async fn newer_schema_is_not_changed() {
    let database = TestDatabase::create().await.unwrap();
    sqlx::query("INSERT INTO store.migrations VALUES ($1, 'from_the_future', sha256('x'))")
        .bind(i32::try_from(MIGRATIONS.len()).unwrap() + 1)
        .execute(&mut admin(&database).await)
        .await
        .unwrap();
    let refused = migrate(&database.admin_url(), database.password())
        .await
        .unwrap_err();
    assert!(matches!(refused, MigrateError::Newer { .. }), "{refused}");
}

#[tokio::test]
async fn password_with_special_characters_is_refused() {
    let refused = migrate("postgres://127.0.0.1:1/servo", "it's; --")
        .await
        .unwrap_err();
    assert!(matches!(refused, MigrateError::BadPassword));
}

/// Managed Postgres offers no superuser: owning the database and creating roles must suffice.
#[tokio::test]
async fn administrator_without_superuser_can_migrate() {
    let own = OwnPostgres::bare(PostgresOptions::without_durability()).await;
    let mut admin = connect(&own.postgres.admin_url()).await;
    for statement in [
        "CREATE ROLE plain LOGIN CREATEROLE PASSWORD 'plainpassword'",
        "CREATE DATABASE managed OWNER plain",
    ] {
        sqlx::raw_sql(statement).execute(&mut admin).await.unwrap();
    }
    let url = format!(
        "postgres://plain:plainpassword@127.0.0.1:{}/managed",
        own.postgres.port()
    );
    assert_eq!(
        migrate(&url, "rolepassword").await.unwrap().applied.len(),
        MIGRATIONS.len()
    );
    assert!(
        migrate(&url, "rolepassword")
            .await
            .unwrap()
            .applied
            .is_empty()
    );
}

#[tokio::test]
async fn no_role_has_superuser_like_attributes() {
    let database = TestDatabase::create().await.unwrap();
    let mut admin = admin(&database).await;
    for role in Role::all() {
        let (is_ordinary, logs_in): (bool, bool) = sqlx::query_as(
            "SELECT NOT (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication), rolcanlogin
             FROM pg_roles WHERE rolname = $1",
        )
        .bind(role.name())
        .fetch_one(&mut admin)
        .await
        .unwrap();
        assert!(is_ordinary, "{role:?} is privileged");
        assert_eq!(logs_in, role.can_log_in(), "{role:?}");
    }
}

/// Timeouts are set on the role, so that they apply to every session that a pooler opens for it.
#[tokio::test]
async fn timeouts_are_set_on_the_role() {
    let database = TestDatabase::create().await.unwrap();
    for role in Role::logins()
        .into_iter()
        .filter(|role| *role != Role::Retention)
    {
        let mut connection = connect(&database.url_of(&role.name())).await;
        let (statement, lock, idle): (String, String, String) = sqlx::query_as(
            "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),
                 current_setting('idle_in_transaction_session_timeout')",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        assert_eq!(
            (statement.as_str(), lock.as_str(), idle.as_str()),
            ("2500ms", "2s", "2s"),
            "{role:?}"
        );
    }
}
