//! Heartbeats of attempts.

use std::time::Duration;

use servo_model::{AttemptId, RunId, TenantId};
use servo_store::{LoopStore, StoreError, query};
use uuid::Uuid;

#[derive(Debug, Clone)]
pub(crate) struct Heartbeat {
    pub(crate) tenant: TenantId,
    pub(crate) run: RunId,
    pub(crate) attempt: AttemptId,
    pub(crate) ordinal: i32,
    /// -1 for a task that is not mapped.
    pub(crate) item: i32,
    /// Progress in parts per million, if user code reports it.
    pub(crate) progress_ppm: Option<i32>,
    pub(crate) progress_message: Option<String>,
}

/// The attempt of the heartbeat, the task's active attempt, the task's state, and whether it is
/// being cancelled.
pub(crate) type HeartbeatRow = (Uuid, Option<Uuid>, Option<i16>, Option<bool>);

/// Records the heartbeats and returns, in the same order, the state of their tasks.
pub(crate) async fn record_heartbeats(
    loops: &LoopStore,
    heartbeats: &[Heartbeat],
) -> Result<Vec<HeartbeatRow>, StoreError> {
    fn column<'a, T>(beats: &'a [Heartbeat], field: impl Fn(&'a Heartbeat) -> T) -> Vec<T> {
        beats.iter().map(field).collect()
    }
    let statement = query(include_str!("record_heartbeats.sql"))
        .bind(column(heartbeats, |beat| beat.tenant.as_str()))
        .bind(column(heartbeats, |beat| {
            Uuid::from_bytes(*beat.run.as_bytes())
        }))
        .bind(column(heartbeats, |beat| {
            Uuid::from_bytes(*beat.attempt.as_bytes())
        }))
        .bind(column(heartbeats, |beat| beat.ordinal))
        .bind(column(heartbeats, |beat| beat.item))
        .bind(column(heartbeats, |beat| beat.progress_ppm))
        .bind(column(heartbeats, |beat| beat.progress_message.as_deref()));
    loops.all(statement).await
}

/// Deletes up to `at_most` heartbeats older than `kept` and returns how many.
pub(crate) async fn delete_old_heartbeats(
    loops: &LoopStore,
    kept: Duration,
    at_most: i64,
) -> Result<u64, StoreError> {
    let delete = query(include_str!("delete_old_heartbeats.sql"))
        .bind(kept.as_secs_f64())
        .bind(at_most);
    loops.execute(delete).await
}
