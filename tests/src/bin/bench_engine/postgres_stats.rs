//! Statements and rows, as Postgres counts them.

use std::time::Duration;

use anyhow::Result;
use servo_store::sqlx::{self, Connection, Executor, PgConnection};

/// Totals since the start of the cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PostgresStats {
    pub(crate) statements: i64,
    pub(crate) rows: i64,
}

impl PostgresStats {
    /// Reads the totals of all tables of Servo after `delay`, in which the backends report their
    /// statistics.
    pub(crate) async fn read(admin_url: &str, delay: Duration) -> Result<PostgresStats> {
        tokio::time::sleep(delay).await;
        let mut connection = PgConnection::connect(admin_url).await?;
        connection
            .execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            .await?;
        let (statements,): (i64,) = sqlx::query_as(
            "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s JOIN pg_roles r ON r.oid = s.userid
             WHERE r.rolname LIKE 'servo\\_%' AND NOT r.rolsuper",
        )
        .fetch_one(&mut connection)
        .await?;
        let (rows,): (i64,) = sqlx::query_as(
            "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_user_tables",
        )
        .fetch_one(&mut connection)
        .await?;
        Ok(PostgresStats { statements, rows })
    }

    /// Statements and rows since `before`, per task.
    pub(crate) fn per_task(self, before: PostgresStats, tasks: usize) -> (f64, f64) {
        let each = |total: i64| total as f64 / tasks as f64;
        (
            each(self.statements - before.statements),
            each(self.rows - before.rows),
        )
    }
}

/// Prints the statements that took most of the time, including those inside functions.
pub(crate) async fn print_statements(admin_url: &str) -> Result<()> {
    let mut connection = PgConnection::connect(admin_url).await?;
    connection
        .execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        .await?;
    let rows: Vec<(i64, f64, f64, i64, String)> = sqlx::query_as(
        "SELECT calls, total_exec_time, total_plan_time, rows,
             left(regexp_replace(query, '\\s+', ' ', 'g'), 110)
         FROM pg_stat_statements ORDER BY total_exec_time + total_plan_time DESC LIMIT 40",
    )
    .fetch_all(&mut connection)
    .await?;
    eprintln!(
        "  {:>8} {:>10} {:>10} {:>8} {:>8}",
        "calls", "run ms", "plan ms", "us each", "rows"
    );
    for (calls, run, plan, rows, text) in rows {
        let each = (run + plan) * 1e3 / calls as f64;
        eprintln!("  {calls:>8} {run:>10.1} {plan:>10.1} {each:>8.0} {rows:>8} {text}");
    }
    Ok(())
}

/// Runs the maintenance that Postgres would otherwise do at a time of its own choosing.
pub(crate) async fn vacuum(admin_url: &str) -> Result<()> {
    let mut connection = PgConnection::connect(admin_url).await?;
    connection.execute("VACUUM (ANALYZE)").await?;
    connection.execute("CHECKPOINT").await?;
    Ok(())
}
