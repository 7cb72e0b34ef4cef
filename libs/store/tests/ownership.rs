//! The database's privileges equal the table in `docs/ownership.md`: for every role, table, column
//! and function.

#![cfg(test)]

mod common;

use std::path::PathBuf;

use common::{admin, connect};
use servo_local::TestDatabase;
use servo_store::ownership::{
    FUNCTIONS, Role, SHARED_SCHEMAS, calls, markdown, owns, reads, schemas,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

struct Table {
    name: String,
    columns: Vec<String>,
}

async fn tables(admin: &mut PgConnection, partitions: bool) -> Vec<Table> {
    let rows = sqlx::query(
        "SELECT n.nspname || '.' || c.relname, array_agg(a.attname::text ORDER BY a.attnum)
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
         WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
             AND ($2 OR NOT c.relispartition)
         GROUP BY 1 ORDER BY 1",
    )
    .bind(schemas())
    .bind(partitions)
    .fetch_all(admin)
    .await
    .unwrap();
    rows.iter()
        .map(|row| Table {
            name: row.get(0),
            columns: row.get(1),
        })
        .collect()
}

/// Checks every login role × table × privilege in the catalogue.
#[tokio::test]
async fn catalogue_grants_equal_the_ownership_table() {
    let database = TestDatabase::create().await.unwrap();
    let mut admin = admin(&database).await;
    let tables = tables(&mut admin, true).await;
    assert!(tables.len() > 20);
    for role in Role::logins() {
        for table in &tables {
            for privilege in ["INSERT", "UPDATE", "DELETE", "SELECT"] {
                let granted = has_table(&mut admin, role, &table.name, privilege).await;
                assert_eq!(
                    granted,
                    owns(role, &table.name),
                    "{privilege} on {} for {role:?}",
                    table.name
                );
            }
            for column in &table.columns {
                for (privilege, expected) in [
                    ("SELECT", reads(role, &table.name, column)),
                    ("UPDATE", owns(role, &table.name)),
                    ("INSERT", owns(role, &table.name)),
                ] {
                    let granted =
                        has_column(&mut admin, role, &table.name, column, privilege).await;
                    assert_eq!(
                        granted, expected,
                        "{privilege} on {}.{column} for {role:?}",
                        table.name
                    );
                }
            }
            for privilege in ["TRUNCATE", "REFERENCES", "TRIGGER"] {
                let granted = has_table(&mut admin, role, &table.name, privilege).await;
                assert!(!granted, "{privilege} on {} for {role:?}", table.name);
            }
        }
    }
}

/// The same by experiment: every role logs in and tries every statement.
#[tokio::test]
async fn statements_are_refused_as_the_ownership_table_says() {
    let database = TestDatabase::create().await.unwrap();
    let tables = tables(&mut admin(&database).await, true).await;
    for role in Role::logins() {
        let mut connection = connect(&database.url_of(&role.name())).await;
        for table in &tables {
            let name = &table.name;
            let column = &table.columns[0];
            let writes = [
                format!("INSERT INTO {name} DEFAULT VALUES"),
                format!("UPDATE {name} SET {column} = DEFAULT"),
                format!("DELETE FROM {name}"),
            ];
            for statement in writes {
                let allowed = is_permitted(&mut connection, &statement).await;
                assert_eq!(allowed, owns(role, name), "{statement} as {role:?}");
            }
            for column in &table.columns {
                let statement = format!("SELECT {column} FROM {name} LIMIT 1");
                let allowed = is_permitted(&mut connection, &statement).await;
                assert_eq!(
                    allowed,
                    reads(role, name, column),
                    "{statement} as {role:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn no_role_can_insert_into_the_ledger() {
    let database = TestDatabase::create().await.unwrap();
    for role in Role::logins() {
        let mut connection = connect(&database.url_of(&role.name())).await;
        let refused = sqlx::raw_sql(
            "INSERT INTO ledger.events VALUES (1, 0, 20, 1, 1, now(), gen_random_uuid(), NULL, NULL, 'acme', '', 'x', 'k', '')",
        )
        .execute(&mut connection)
        .await
        .unwrap_err()
        .into_database_error()
        .unwrap();
        assert_eq!(
            refused.code().as_deref(),
            Some("42501"),
            "{role:?}: {refused}"
        );
        let message = refused.message().to_owned();
        let expected = [
            "permission denied for table events",
            "permission denied for schema ledger",
        ];
        assert!(expected.contains(&message.as_str()), "{role:?}: {message}");
    }
}

#[tokio::test]
async fn functions_are_callable_only_by_listed_roles() {
    let database = TestDatabase::create().await.unwrap();
    let mut admin = admin(&database).await;
    let rows = sqlx::query(
        "SELECT n.nspname || '.' || p.proname, p.oid, pg_get_userbyid(p.proowner)::text, p.prosecdef,
             coalesce(p.proconfig @> ARRAY['search_path=pg_catalog, pg_temp'], false) OR p.prosqlbody IS NOT NULL
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = ANY ($1) ORDER BY 1",
    )
    .bind(schemas())
    .fetch_all(&mut admin)
    .await
    .unwrap();
    let in_database: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let mut in_table: Vec<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
    in_table.sort_unstable();
    assert_eq!(in_database, in_table);
    for row in &rows {
        let name: String = row.get(0);
        let function = FUNCTIONS
            .iter()
            .find(|function| function.name == name)
            .unwrap();
        assert_eq!(
            row.get::<String, _>(2),
            function.runs_as.name(),
            "owner of {name}"
        );
        assert!(row.get::<bool, _>(4), "{name} does not pin its search_path");
        // A service's own function runs with the rights of its caller.
        let shared = SHARED_SCHEMAS
            .iter()
            .any(|schema| name.starts_with(&format!("{schema}.")));
        let runs_as_owner = shared && !function.callers.is_empty();
        assert_eq!(
            row.get::<bool, _>(3),
            runs_as_owner,
            "whether {name} runs as its owner"
        );
        for role in Role::logins() {
            let granted: bool =
                sqlx::query_scalar("SELECT has_function_privilege($1, $2, 'EXECUTE')")
                    .bind(role.name())
                    .bind(row.get::<sqlx::postgres::types::Oid, _>(1))
                    .fetch_one(&mut admin)
                    .await
                    .unwrap();
            assert_eq!(granted, calls(role, function), "{name} for {role:?}");
        }
    }
}

#[tokio::test]
async fn ownership_page_is_current() {
    let database = TestDatabase::create().await.unwrap();
    let tables = tables(&mut admin(&database).await, false).await;
    let names: Vec<String> = tables.into_iter().map(|table| table.name).collect();
    let fresh = markdown(&names);
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/ownership.md");
    if std::env::var_os("SERVO_BLESS").is_some() {
        std::fs::create_dir_all(page.parent().unwrap()).unwrap();
        std::fs::write(&page, &fresh).unwrap();
    }
    let committed = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        committed == fresh,
        "docs/ownership.md is stale; rewrite it with SERVO_BLESS=1"
    );
}

async fn has_table(admin: &mut PgConnection, role: Role, table: &str, privilege: &str) -> bool {
    sqlx::query_scalar("SELECT has_table_privilege($1, $2, $3)")
        .bind(role.name())
        .bind(table)
        .bind(privilege)
        .fetch_one(admin)
        .await
        .unwrap()
}

async fn has_column(
    admin: &mut PgConnection,
    role: Role,
    table: &str,
    column: &str,
    privilege: &str,
) -> bool {
    sqlx::query_scalar("SELECT has_column_privilege($1, $2, $3, $4)")
        .bind(role.name())
        .bind(table)
        .bind(column)
        .bind(privilege)
        .fetch_one(admin)
        .await
        .unwrap()
}

/// Whether the statement passes Postgres' permission checks; it is rolled back in any case.
async fn is_permitted(connection: &mut PgConnection, statement: &str) -> bool {
    let mut tx = connection.begin().await.unwrap();
    let outcome = sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(&mut *tx)
        .await;
    tx.rollback().await.unwrap();
    match outcome {
        Ok(_) => true,
        Err(error) => {
            let error = error.into_database_error().unwrap();
            !(error.code().as_deref() == Some("42501")
                && error.message().starts_with("permission denied"))
        }
    }
}
