//! Log lines of attempts.

use std::time::Duration;

use servo_model::{RunId, TenantId};
use servo_store::{LoopStore, StoreError, TenantTx, query};
use uuid::Uuid;

/// The lines of one call, encoded as `servo.v1.AppendLogsRequest` without the names of the attempt.
#[derive(Debug)]
pub(crate) struct LogBatch {
    pub(crate) tenant: TenantId,
    pub(crate) workspace: String,
    pub(crate) run: Uuid,
    pub(crate) attempt: Uuid,
    pub(crate) session: i64,
    pub(crate) sequence: i64,
    pub(crate) lines: Vec<u8>,
}

/// The number of a batch in the order of storing, its attempt and its encoded lines.
pub(crate) type StoredBatch = (i64, Uuid, Vec<u8>);

/// Stores the batches. One that is stored already is skipped.
pub(crate) async fn append_logs(loops: &LoopStore, batches: &[LogBatch]) -> Result<(), StoreError> {
    fn column<'a, T>(batches: &'a [LogBatch], field: impl Fn(&'a LogBatch) -> T) -> Vec<T> {
        batches.iter().map(field).collect()
    }
    let insert = query(include_str!("append_logs.sql"))
        .bind(column(batches, |batch| batch.tenant.as_str()))
        .bind(column(batches, |batch| batch.workspace.as_str()))
        .bind(column(batches, |batch| batch.run))
        .bind(column(batches, |batch| batch.attempt))
        .bind(column(batches, |batch| batch.session))
        .bind(column(batches, |batch| batch.sequence))
        .bind(column(batches, |batch| batch.lines.as_slice()));
    loops.execute(insert).await.map(drop)
}

/// Returns batches after `after` in the order of storing, of these attempts or of all.
pub(crate) async fn logs_after(
    tx: &mut TenantTx,
    run: &RunId,
    after: i64,
    attempts: Option<Vec<Uuid>>,
    at_most: i64,
) -> Result<Vec<StoredBatch>, StoreError> {
    let select = query(include_str!("logs_after.sql"))
        .bind(Uuid::from_bytes(*run.as_bytes()))
        .bind(after)
        .bind(attempts)
        .bind(at_most);
    tx.all(select).await
}

/// Returns batches before `before`, the last one first, of these attempts or of all.
pub(crate) async fn logs_before(
    tx: &mut TenantTx,
    run: &RunId,
    before: i64,
    attempts: Option<Vec<Uuid>>,
    at_most: i64,
) -> Result<Vec<StoredBatch>, StoreError> {
    let select = query(include_str!("logs_before.sql"))
        .bind(Uuid::from_bytes(*run.as_bytes()))
        .bind(before)
        .bind(attempts)
        .bind(at_most);
    tx.all(select).await
}

/// Deletes up to `at_most` batches that were received longer than `kept` ago and returns how many.
pub(crate) async fn delete_old_logs(
    loops: &LoopStore,
    kept: Duration,
    at_most: i64,
) -> Result<u64, StoreError> {
    let delete = query(include_str!("delete_old_logs.sql"))
        .bind(kept.as_secs_f64())
        .bind(at_most);
    loops.execute(delete).await
}
