//! What has become old: lines that nobody reads any more, and beats of attempts that ended long ago.

use std::time::Duration;

use servo_store::{LoopStore, StoreError, query};

pub(crate) const EVERY: Duration = Duration::from_secs(3_600);
/// An attempt that was silent for so long has ended, whatever its heartbeat timeout is.
const BEATS_KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// A batch of lines may have a megabyte.
const BATCHES_PER_DELETE: i64 = 500;
const BEATS_PER_DELETE: i64 = 5_000;

/// Deletes in steps that hold nobody up, and answers how many rows went.
pub(crate) async fn sweep(loops: LoopStore, logs_kept: Duration) -> Result<u64, StoreError> {
    let logs = delete(
        &loops,
        include_str!("store/old_logs.sql"),
        logs_kept,
        BATCHES_PER_DELETE,
    )
    .await?;
    let beats = delete(
        &loops,
        include_str!("store/old_beats.sql"),
        BEATS_KEPT,
        BEATS_PER_DELETE,
    )
    .await?;
    Ok(logs + beats)
}

async fn delete(
    loops: &LoopStore,
    statement: &'static str,
    kept: Duration,
    at_most: i64,
) -> Result<u64, StoreError> {
    let mut gone = 0;
    loop {
        let some = loops
            .execute(query(statement).bind(kept.as_secs_f64()).bind(at_most))
            .await?;
        gone += some;
        if some < at_most.unsigned_abs() {
            return Ok(gone);
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
    async fn what_is_old_goes_and_the_rest_stays() {
        let database = TestDatabase::create().await.unwrap();
        let mut admin = sqlx::PgConnection::connect(&database.admin_url())
            .await
            .unwrap();
        admin.execute(sqlx::raw_sql(ROWS)).await.unwrap();
        let config = DatabaseConfig::new(database.service_url(), database.password());
        let store = Store::connect(Service::Callback, &config).unwrap();
        let kept = Duration::from_secs(10 * 24 * 3_600 - 60);
        let gone = sweep(store.loops().clone(), kept).await.unwrap();
        assert_eq!(
            gone,
            30 * 20 + 3,
            "days 10 to 39 of lines, days 7 to 9 of beats"
        );
        assert_eq!(sweep(store.loops().clone(), kept).await.unwrap(), 0);
    }
}
