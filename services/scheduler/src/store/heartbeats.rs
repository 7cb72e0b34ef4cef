//! Heartbeats of attempts, which the callback service stores.

use std::collections::HashMap;

use servo_model::{AttemptId, Timestamp};
use servo_store::{LoopStore, StoreError, query};
use uuid::Uuid;

/// A heartbeat with the progress it reported, in millionths.
pub(crate) type BeatWithProgress = (Timestamp, Option<i32>, Option<String>);

pub(crate) async fn last_with_progress(
    loops: &LoopStore,
    attempt: Uuid,
) -> Result<Option<BeatWithProgress>, StoreError> {
    let rows: Vec<BeatWithProgress> = loops
        .all(query(include_str!("last_beat.sql")).bind(attempt))
        .await?;
    Ok(rows.into_iter().next())
}

/// The last heartbeat of an attempt and the time, both by the database's clock.
pub(crate) async fn last_and_now(
    loops: &LoopStore,
    attempt: AttemptId,
) -> Result<Option<(Option<Timestamp>, Timestamp)>, StoreError> {
    let select =
        query(include_str!("last_beat_and_now.sql")).bind(Uuid::from_bytes(*attempt.as_bytes()));
    let rows: Vec<(Option<Timestamp>, Timestamp)> = loops.all(select).await?;
    Ok(rows.into_iter().next())
}

pub(crate) async fn list_last(
    loops: &LoopStore,
    attempts: impl Iterator<Item = AttemptId>,
) -> Result<HashMap<AttemptId, Timestamp>, StoreError> {
    let ids: Vec<Uuid> = attempts
        .map(|id| Uuid::from_bytes(*id.as_bytes()))
        .collect();
    let rows: Vec<(Uuid, Timestamp)> = loops
        .all(query(include_str!("last_beats.sql")).bind(&ids))
        .await?;
    let beat = |(id, at): (Uuid, Timestamp)| (AttemptId::from_bytes(id.into_bytes()), at);
    Ok(rows.into_iter().map(beat).collect())
}

/// Since when all callback instances accept heartbeats; `None` while one of them does not.
pub(crate) async fn callbacks_healthy_since(
    loops: &LoopStore,
) -> Result<Option<Timestamp>, StoreError> {
    let rows: Vec<(Option<Timestamp>,)> = loops
        .all(query(include_str!("callbacks_healthy_since.sql")))
        .await?;
    Ok(rows.into_iter().find_map(|(since,)| since))
}
