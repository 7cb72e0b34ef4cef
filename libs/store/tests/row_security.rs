//! Tenant isolation by row security: no table without it, no rows without a tenant, no leaks over a
//! shared pool. (F24)

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod common;

use std::time::Duration;

use common::{admin, connect, count, event, new_id, shard, store, tenant};
use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use servo_local::TestDatabase;
use servo_model::{EventType, Service};
use servo_store::ownership::{Role, schemas};
use servo_store::{StoreError, TenantStore, query};
use sqlx::{AssertSqlSafe, PgConnection};

#[tokio::test]
async fn f24_no_tenant_table_is_without_forced_row_security_and_a_policy() {
    let database = TestDatabase::create().await.unwrap();
    let mut admin = admin(&database).await;
    let unprotected: Vec<(String,)> = sqlx::query_as(
        "SELECT n.nspname || '.' || c.relname
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p')
             AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant')
             AND NOT (c.relrowsecurity AND c.relforcerowsecurity
                 AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid))",
    )
    .bind(schemas())
    .fetch_all(&mut admin)
    .await
    .unwrap();
    assert_eq!(unprotected, []);
    // A view uses its owner's privileges unless it is declared otherwise.
    let (views,): (i64,) = sqlx::query_as(
        "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = ANY ($1) AND c.relkind IN ('v', 'm')
             AND NOT coalesce(c.reloptions @> ARRAY['security_invoker=true'], false)",
    )
    .bind(schemas())
    .fetch_one(&mut admin)
    .await
    .unwrap();
    assert_eq!(views, 0);
}

/// A table that a later migration adds without policies gets them in the next run.
#[tokio::test]
async fn f24_a_new_table_cannot_forget_its_policies() {
    let database = TestDatabase::create().await.unwrap();
    let mut admin = admin(&database).await;
    sqlx::raw_sql(
        "SET ROLE servo_owner; CREATE TABLE planner.later (tenant text NOT NULL);
         INSERT INTO planner.later VALUES ('acme'), ('globex'); RESET ROLE",
    )
    .execute(&mut admin)
    .await
    .unwrap();
    servo_store::migrate::migrate(&database.admin_url(), database.password())
        .await
        .unwrap();
    let store = store(&database, Service::Planner);
    let mut tx = store.requests().begin(&tenant("acme")).await.unwrap();
    let visible: Vec<(String,)> = tx
        .all(query("SELECT tenant FROM planner.later"))
        .await
        .unwrap();
    assert_eq!(visible, [("acme".to_owned(),)]);
}

/// One row per service for a tenant, inserted by the service's own role.
const ROWS: [(Service, &str, &str); 8] = [
    (
        Service::Gateway,
        "gateway.tenants",
        "(tenant, state) VALUES ($1, 1)",
    ),
    (
        Service::Planner,
        "planner.plans",
        "(tenant, workspace, plan_id, plan) VALUES ($1, 'main', sha256('p'), '')",
    ),
    (
        Service::Scheduler,
        "scheduler.run_key_conflicts",
        "VALUES ($1, 'main', gen_random_uuid(), gen_random_uuid(), '', clock_timestamp(), sha256('r'))",
    ),
    (
        Service::Dispatcher,
        "dispatcher.workers",
        "VALUES ($1, gen_random_uuid(), 'w', 1, 's', '')",
    ),
    (
        Service::Callback,
        "callback.heartbeats",
        "(tenant, attempt_id, beat_at) VALUES ($1, gen_random_uuid(), now())",
    ),
    (
        Service::Automation,
        "automation.schedules",
        "VALUES ($1, 'main', gen_random_uuid(), 1, 1, '', NULL)",
    ),
    (
        Service::Backfill,
        "backfill.backfills",
        "VALUES ($1, 'main', gen_random_uuid(), 1, 1, '', clock_timestamp(), clock_timestamp())",
    ),
    (
        Service::Quota,
        "quota.quotas",
        "VALUES ($1, 1, '', clock_timestamp())",
    ),
];

#[tokio::test]
async fn f24_a_handler_sees_its_tenant_and_without_one_nothing() {
    let database = TestDatabase::create().await.unwrap();
    for (service, table, values) in ROWS {
        let store = store(&database, service);
        let insert = format!("INSERT INTO {table} {values}");
        for tenant in ["acme", "globex"] {
            let mut tx = store.loops().begin().await.unwrap();
            tx.execute(query(AssertSqlSafe(insert.clone())).bind(tenant))
                .await
                .unwrap();
            tx.commit().await.unwrap();
        }
        let select = format!("SELECT tenant FROM {table}");
        let mut tx = store.requests().begin(&tenant("acme")).await.unwrap();
        let visible: Vec<(String,)> = tx.all(query(AssertSqlSafe(select.clone()))).await.unwrap();
        assert_eq!(visible, [("acme".to_owned(),)], "{table}");
        let hidden = format!("DELETE FROM {table} WHERE tenant = 'globex'");
        assert_eq!(
            tx.execute(query(AssertSqlSafe(hidden))).await.unwrap(),
            0,
            "{table}"
        );
        let refused = tx
            .execute(query(AssertSqlSafe(insert.clone())).bind("initech"))
            .await
            .unwrap_err();
        assert!(
            matches!(&refused, StoreError::Refused(why) if why.contains("row-level security")),
            "{refused}"
        );
        let mut unprotected = connect(&database.url_of(&Role::Requests(service).name())).await;
        assert_eq!(
            rows_seen(&mut unprotected, table).await,
            0,
            "{table} without a tenant"
        );
        sqlx::raw_sql("SET servo.tenant = ''")
            .execute(&mut unprotected)
            .await
            .unwrap();
        assert_eq!(
            rows_seen(&mut unprotected, table).await,
            0,
            "{table} with an empty tenant"
        );
        let refused = query(AssertSqlSafe(insert))
            .bind("acme")
            .execute(&mut unprotected)
            .await
            .unwrap_err();
        assert!(
            refused.to_string().contains("row-level security"),
            "{refused}"
        );
        let all: Vec<(String,)> = store
            .loops()
            .all(query(AssertSqlSafe(select)))
            .await
            .unwrap();
        assert_eq!(all.len(), 2, "loops see all tenants of {table}");
    }
}

#[tokio::test]
async fn f24_a_handler_streams_only_its_tenants_events() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let events = ["acme", "globex", "acme"].iter().enumerate();
    let events = events
        .map(|(n, tenant)| event(EventType::TaskFinished, shard(0), tenant, &format!("{n}")))
        .collect();
    store.ledger().append(events).await.unwrap();
    let mut tx = store.requests().begin(&tenant("globex")).await.unwrap();
    let visible: Vec<(String, i64)> = tx
        .all(query("SELECT tenant, position FROM ledger.events"))
        .await
        .unwrap();
    assert_eq!(visible, [("globex".to_owned(), 2)]);
}

async fn rows_seen(connection: &mut PgConnection, table: &str) -> i64 {
    let select = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
    sqlx::query_scalar(select)
        .fetch_one(connection)
        .await
        .unwrap()
}

const TENANTS: [&str; 5] = ["acme", "globex", "initech", "umbrella", "hooli"];

/// Random statements, commits, rollbacks, failures and cancelled callers, over four shared
/// connections.
#[tokio::test]
async fn f24_random_statements_over_a_shared_pool_leak_nothing() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Planner);
    let statements = count(10_000, 500);
    let callers = (0..16u64).map(|seed| {
        let requests = store.requests().clone();
        tokio::spawn(
            async move { run_random_statements(requests, seed, statements / 16 + 1).await },
        )
    });
    for done in join_all(callers).await {
        done.unwrap();
    }
    let foreign: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM planner.plans WHERE convert_from(plan, 'UTF8') <> tenant",
    )
    .fetch_one(&mut admin(&database).await)
    .await
    .unwrap();
    assert_eq!(foreign, 0, "a row was written by another tenant");
}

/// Every row's plan holds its writer's tenant, so that foreign writes are detected.
async fn run_random_statements(requests: TenantStore, seed: u64, statements: usize) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut left = statements;
    while left > 0 {
        let name = TENANTS[random.random_range(0..TENANTS.len())];
        let Ok(mut tx) = requests.begin(&tenant(name)).await else {
            continue;
        };
        let mut failed = false;
        for _ in 0..random.random_range(1..4) {
            left = left.saturating_sub(1);
            failed |= !one_statement(&mut tx, name, &mut random).await;
        }
        match random.random_range(0..4) {
            0 => drop(tx),
            1 => {
                // A caller whose deadline passes in the middle of a statement.
                let slow = tx.execute(query("SELECT pg_sleep(0.02)"));
                let _ = tokio::time::timeout(Duration::from_millis(1), slow).await;
            }
            _ => assert_eq!(tx.commit().await.is_ok(), !failed),
        }
    }
}

/// Returns false when the statement failed, which some do on purpose.
async fn one_statement(tx: &mut servo_store::TenantTx, tenant: &str, random: &mut StdRng) -> bool {
    let victim = TENANTS[random.random_range(0..TENANTS.len())];
    match random.random_range(0..6) {
        0 | 1 => {
            let insert = "INSERT INTO planner.plans (tenant, workspace, plan_id, plan)
                VALUES ($1, 'main', sha256($2), convert_to($1, 'UTF8')) ON CONFLICT DO NOTHING";
            tx.execute(
                query(insert)
                    .bind(tenant)
                    .bind(new_id().as_bytes().to_vec()),
            )
            .await
            .is_ok()
        }
        2 => {
            let update = "UPDATE planner.plans SET plan = convert_to($1, 'UTF8') WHERE $2 IN (tenant, workspace)";
            tx.execute(query(update).bind(tenant).bind(victim))
                .await
                .is_ok()
        }
        3 => {
            let delete =
                "DELETE FROM planner.plans WHERE tenant = $1 AND get_byte(plan_id, 0) < 64";
            let gone = tx.execute(query(delete).bind(victim)).await;
            assert!(
                victim == tenant || !matches!(gone, Ok(1..)),
                "{tenant} deleted rows of {victim}"
            );
            gone.is_ok()
        }
        4 => {
            let visible: Result<Vec<(String, Vec<u8>)>, _> = tx
                .all(query("SELECT tenant, plan FROM planner.plans"))
                .await;
            for (owner, plan) in visible.iter().flatten() {
                assert_eq!(
                    (owner.as_str(), plan.as_slice()),
                    (tenant, tenant.as_bytes()),
                    "a leak"
                );
            }
            visible.is_ok()
        }
        _ => tx.execute(query("SELECT 1 / 0")).await.is_ok(),
    }
}
