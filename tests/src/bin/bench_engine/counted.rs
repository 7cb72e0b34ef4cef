//! What Postgres counted: statements and rows.

use std::time::Duration;

use anyhow::Result;
use servo_store::sqlx::{self, Connection, Executor, PgConnection};

/// An idle backend tells the statistics what it did within ten seconds.
const TOLD: Duration = Duration::from_secs(11);

/// Totals since the cluster began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) statements: i64,
    pub(crate) rows: i64,
}

impl Counted {
    /// All that was done until now, in all tables of Servo.
    pub(crate) async fn read(admin_url: &str) -> Result<Counted> {
        tokio::time::sleep(TOLD).await;
        let mut connection = PgConnection::connect(admin_url).await?;
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements").await?;
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
        Ok(Counted { statements, rows })
    }

    /// What was done since, per task.
    pub(crate) fn per_task(self, since: Counted, tasks: usize) -> (f64, f64) {
        let each = |total: i64| total as f64 / tasks as f64;
        (each(self.statements - since.statements), each(self.rows - since.rows))
    }
}
