//! The statements of the queue, one function each.

use std::time::Duration;

use servo_store::{LoopStore, LoopTx, StoreError, query};
use uuid::Uuid;

use super::QueueCounts;
use super::settle::Settled;
use crate::port::{NewEntry, QueueSettings};

/// A task that this pusher may push now.
#[derive(Debug, Clone)]
pub(super) struct Claimed {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) body: Vec<u8>,
    /// Includes this push.
    pub(super) tries: i32,
}

pub(super) async fn ensure_queues(
    loops: &LoopStore,
    queues: impl Iterator<Item = &QueueSettings>,
) -> Result<(), StoreError> {
    let (names, tokens): (Vec<String>, Vec<f64>) = queues
        .map(|queue| (queue.name.to_string(), queue.burst()))
        .unzip();
    loops
        .execute(
            query(include_str!("sql/ensure_queues.sql"))
                .bind(names)
                .bind(tokens),
        )
        .await?;
    Ok(())
}

/// Returns queue and name of the entries that are new.
pub(super) async fn create(
    loops: &LoopStore,
    entries: &[NewEntry],
) -> Result<Vec<(String, String)>, StoreError> {
    let create = query(include_str!("sql/create.sql"))
        .bind(
            entries
                .iter()
                .map(|entry| entry.queue.to_string())
                .collect::<Vec<_>>(),
        )
        .bind(
            entries
                .iter()
                .map(|entry| entry.name.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(
            entries
                .iter()
                .map(|entry| entry.tenant.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(
            entries
                .iter()
                .map(|entry| entry.url.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(
            entries
                .iter()
                .map(|entry| entry.body.to_vec())
                .collect::<Vec<_>>(),
        )
        .bind(
            entries
                .iter()
                .map(|entry| entry.not_before)
                .collect::<Vec<_>>(),
        )
        .bind(super::CHANNEL);
    let rows: Vec<(String, String, i64)> = loops.all(create).await?;
    Ok(rows
        .into_iter()
        .map(|(queue, name, _)| (queue, name))
        .collect())
}

pub(super) async fn delete(
    loops: &LoopStore,
    queue: &str,
    names: &[String],
) -> Result<u64, StoreError> {
    loops
        .execute(
            query(include_str!("sql/delete.sql"))
                .bind(queue)
                .bind(names),
        )
        .await
}

pub(super) async fn pause(loops: &LoopStore, queue: &str, paused: bool) -> Result<(), StoreError> {
    let pause = query(include_str!("sql/pause.sql"))
        .bind(queue)
        .bind(paused)
        .bind(super::CHANNEL);
    loops.execute(pause).await?;
    Ok(())
}

/// Returns whether the queue is paused and how many pushes its rate allows now. Until the
/// transaction ends no other pusher claims from this queue.
pub(super) async fn lock_queue(
    tx: &mut LoopTx,
    queue: &QueueSettings,
) -> Result<Option<(bool, f64)>, StoreError> {
    let lock = query(include_str!("sql/lock_queue.sql"))
        .bind(&*queue.name)
        .bind(queue.burst())
        .bind(queue.max_per_second);
    tx.optional(lock).await
}

pub(super) async fn in_flight(tx: &mut LoopTx, queue: &str) -> Result<i64, StoreError> {
    let (count,): (i64,) = tx
        .one(query(include_str!("sql/in_flight.sql")).bind(queue))
        .await?;
    Ok(count)
}

pub(super) async fn claim(
    tx: &mut LoopTx,
    queue: &str,
    limit: i64,
    tokens: f64,
    lease: Duration,
    pusher: Uuid,
) -> Result<Vec<Claimed>, StoreError> {
    let claim = query(include_str!("sql/claim.sql"))
        .bind(queue)
        .bind(limit)
        .bind(tokens)
        .bind(lease)
        .bind(pusher);
    let rows: Vec<(String, String, Vec<u8>, i32)> = tx.all(claim).await?;
    Ok(rows
        .into_iter()
        .map(|(name, url, body, tries)| Claimed {
            name,
            url,
            body,
            tries,
        })
        .collect())
}

/// The time until the next task of the queue is due.
pub(super) async fn next_due(tx: &mut LoopTx, queue: &str) -> Result<Option<Duration>, StoreError> {
    let due: Option<(i64,)> = tx
        .optional(query(include_str!("sql/next_due.sql")).bind(queue))
        .await?;
    Ok(due.map(|(us,)| Duration::from_micros(us.max(0).unsigned_abs())))
}

pub(super) async fn settle(
    loops: &LoopStore,
    pusher: Uuid,
    settled: &[Settled],
) -> Result<(), StoreError> {
    let delay_ms = |settled: &Settled| i64::try_from(settled.delay.as_millis()).unwrap_or(i64::MAX);
    let settle = query(include_str!("sql/settle.sql"))
        .bind(
            settled
                .iter()
                .map(|one| one.queue.to_string())
                .collect::<Vec<_>>(),
        )
        .bind(
            settled
                .iter()
                .map(|one| one.name.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(settled.iter().map(|one| one.tries).collect::<Vec<_>>())
        .bind(
            settled
                .iter()
                .map(|one| one.state.code())
                .collect::<Vec<_>>(),
        )
        .bind(settled.iter().map(delay_ms).collect::<Vec<_>>())
        .bind(
            settled
                .iter()
                .map(|one| one.fault.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(pusher);
    loops.execute(settle).await?;
    Ok(())
}

/// Deletes up to `limit` names whose retention has ended, and returns their number.
pub(super) async fn expire(
    loops: &LoopStore,
    after: Duration,
    limit: u32,
) -> Result<u64, StoreError> {
    loops
        .execute(
            query(include_str!("sql/expire.sql"))
                .bind(after)
                .bind(i64::from(limit)),
        )
        .await
}

pub(super) async fn counts(loops: &LoopStore) -> Result<Vec<QueueCounts>, StoreError> {
    let rows: Vec<(String, i64, i64)> = loops.all(query(include_str!("sql/counts.sql"))).await?;
    Ok(rows
        .into_iter()
        .map(|(queue, waiting, pushing)| QueueCounts {
            queue,
            waiting,
            pushing,
        })
        .collect())
}
