//! Roles are shared by the whole cluster, so two databases may change one role at the same time:
//! every statement here is one transaction, changes only what is missing, and is retried after a
//! conflict.

use std::collections::HashMap;
use std::time::Duration;

use rand::Rng;
use servo_model::Service;
use sqlx::{AssertSqlSafe, PgConnection};

use super::MigrateError;
use super::scram::verifier;
use crate::ownership::{Role, timeouts};

const TRIES_MAX: u32 = 100;

pub(super) async fn ensure(
    connection: &mut PgConnection,
    password: &str,
) -> Result<(), MigrateError> {
    let known = known_roles(connection).await?;
    let secret = verifier(password, rand::rng().random());
    for role in Role::all() {
        let name = role.name();
        if !known.contains_key(&name) {
            run(connection, format!("CREATE ROLE {name}")).await?;
        }
        if role.can_log_in() {
            run(
                connection,
                format!("ALTER ROLE {name} LOGIN PASSWORD '{secret}'"),
            )
            .await?;
        }
        let existing = known.get(&name).map(Vec::as_slice).unwrap_or_default();
        for (setting, value) in settings(role) {
            if !existing.contains(&format!("{setting}={value}")) {
                run(
                    connection,
                    format!("ALTER ROLE {name} SET {setting} = '{value}'"),
                )
                .await?;
            }
        }
    }
    ensure_memberships(connection).await
}

/// Returns the settings of each existing role, as `name=value`.
async fn known_roles(
    connection: &mut PgConnection,
) -> Result<HashMap<String, Vec<String>>, MigrateError> {
    let names: Vec<String> = Role::all().into_iter().map(Role::name).collect();
    let rows: Vec<(String, Vec<String>)> = sqlx::query_as(include_str!("../sql/known_roles.sql"))
        .bind(names)
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().collect())
}

fn settings(role: Role) -> Vec<(&'static str, String)> {
    let ms = |limit: Duration| format!("{}ms", limit.as_millis());
    let statement = match role {
        Role::Requests(_) | Role::Loops(_) => timeouts::STATEMENT_MAX,
        Role::Retention => timeouts::RETENTION_STATEMENT_MAX,
        _ => return Vec::new(),
    };
    let mut settings = vec![
        ("statement_timeout", ms(statement)),
        ("lock_timeout", ms(timeouts::LOCK_MAX)),
        (
            "idle_in_transaction_session_timeout",
            ms(timeouts::IDLE_IN_TRANSACTION_MAX),
        ),
    ];
    // Services find rows by index. A query plan made while a table was small is reused while it
    // grows, so it must not be a sequential scan.
    if role != Role::Retention {
        settings.push(("enable_seqscan", "off".to_owned()));
    }
    // A fold addresses every row by its key: a nested loop over an index is always right, and
    // planning each batch again would cost more than the batch.
    if role == Role::Loops(Service::Scheduler) {
        settings.push(("plan_cache_mode", "force_generic_plan".to_owned()));
        settings.push(("enable_hashjoin", "off".to_owned()));
        settings.push(("enable_mergejoin", "off".to_owned()));
    }
    settings
}

/// Login roles join the group that the row security policies name. The owner joins the definer, and
/// an administrator that is not a superuser joins both, because only a member may transfer
/// ownership.
async fn ensure_memberships(connection: &mut PgConnection) -> Result<(), MigrateError> {
    let groups = Role::all()
        .into_iter()
        .filter_map(|role| Some((role.group()?.name(), role.name())));
    let owner = (Role::Definer.name(), Role::Owner.name());
    let mut wanted: Vec<(String, String)> = groups.chain([owner]).collect();
    if let Some(admin) = plain_admin(connection).await? {
        wanted.extend([Role::Owner, Role::Definer].map(|role| (role.name(), admin.clone())));
    }
    for (group, member) in wanted {
        let is_member: bool = sqlx::query_scalar(include_str!("../sql/is_member.sql"))
            .bind(&group)
            .bind(&member)
            .fetch_one(&mut *connection)
            .await?;
        if !is_member {
            run(connection, format!("GRANT {group} TO {}", quoted(&member))).await?;
        }
    }
    Ok(())
}

async fn plain_admin(connection: &mut PgConnection) -> Result<Option<String>, MigrateError> {
    Ok(sqlx::query_scalar(include_str!("../sql/plain_admin.sql"))
        .fetch_optional(connection)
        .await?)
}

fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

async fn run(connection: &mut PgConnection, statement: String) -> Result<(), MigrateError> {
    let mut tries = 1;
    loop {
        match sqlx::raw_sql(AssertSqlSafe(statement.as_str()))
            .execute(&mut *connection)
            .await
        {
            Ok(_) => return Ok(()),
            Err(error) if already_exists(&error) && statement.starts_with("CREATE") => {
                return Ok(());
            }
            Err(error) if is_conflict(&error) && tries < TRIES_MAX => {
                tries += 1;
                let pause = Duration::from_millis(rand::rng().random_range(1..20));
                tokio::time::sleep(pause).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn already_exists(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code == "42710" || code == "23505")
}

/// Postgres has no separate code for "tuple concurrently updated".
fn is_conflict(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| matches!(code.as_str(), "XX000" | "23505" | "40001"))
}

fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}
