//! Retention: deletes expired logs and heartbeats in small batches.

use std::time::Duration;

use servo_store::{LoopStore, StoreError};

use crate::store;

pub(crate) const INTERVAL: Duration = Duration::from_secs(3_600);
/// An attempt that has been silent for this long has ended, whatever its heartbeat timeout is.
const HEARTBEATS_KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Small, because a batch of log lines may have a megabyte.
const LOGS_PER_DELETE: i64 = 500;
const HEARTBEATS_PER_DELETE: i64 = 5_000;

/// Returns the number of deleted rows.
pub(crate) async fn run_once(loops: LoopStore, logs_kept: Duration) -> Result<u64, StoreError> {
    let logs = delete_logs(&loops, logs_kept).await?;
    Ok(logs + delete_heartbeats(&loops).await?)
}

async fn delete_logs(loops: &LoopStore, kept: Duration) -> Result<u64, StoreError> {
    let mut total = 0;
    loop {
        let deleted = store::delete_old_logs(loops, kept, LOGS_PER_DELETE).await?;
        total += deleted;
        if deleted < LOGS_PER_DELETE.unsigned_abs() {
            return Ok(total);
        }
    }
}

async fn delete_heartbeats(loops: &LoopStore) -> Result<u64, StoreError> {
    let mut total = 0;
    loop {
        let deleted =
            store::delete_old_heartbeats(loops, HEARTBEATS_KEPT, HEARTBEATS_PER_DELETE).await?;
        total += deleted;
        if deleted < HEARTBEATS_PER_DELETE.unsigned_abs() {
            return Ok(total);
        }
    }
}

#[cfg(test)]
mod tests {
    use servo_local::TestDatabase;
    use servo_model::Service;
    use servo_store::{DatabaseConfig, Store};
    use sqlx::{Connection, Executor};

    use super::*;

    const ROWS: &str = "
        INSERT INTO callback.logs (tenant, workspace, run_id, attempt_id, session, sequence, received_at, lines)
        SELECT 'acme', 'prod', gen_random_uuid(), gen_random_uuid(), 1, 1, now() - n * interval '1 day', ''
        FROM generate_series(0, 39) n, generate_series(1, 20);
        INSERT INTO callback.heartbeats (attempt_id, tenant, beat_at)
        SELECT gen_random_uuid(), 'acme', now() - n * interval '1 day' FROM generate_series(0, 9) n";

    #[tokio::test]
    async fn sweep_deletes_only_expired_rows() {
        let database = TestDatabase::create().await.unwrap();
        let mut admin = sqlx::PgConnection::connect(&database.admin_url())
            .await
            .unwrap();
        admin.execute(sqlx::raw_sql(ROWS)).await.unwrap();
        let config = DatabaseConfig::new(database.service_url(), database.password());
        let store = Store::connect(Service::Callback, &config).unwrap();
        let kept = Duration::from_secs(10 * 24 * 3_600 - 60);
        let deleted = run_once(store.loops().clone(), kept).await.unwrap();
        assert_eq!(
            deleted,
            30 * 20 + 3,
            "days 10 to 39 of logs, days 7 to 9 of heartbeats"
        );
        assert_eq!(run_once(store.loops().clone(), kept).await.unwrap(), 0);
    }
}
