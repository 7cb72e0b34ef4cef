//! The statements of the bus, one function each.

use std::time::Duration;

use servo_model::Stream;
use servo_store::{LoopStore, StoreError, Tx, query};

use super::Row;
use crate::core::Settled;
use crate::port::{Subscription, Topic, Version};

pub(super) async fn subscribe(
    loops: &LoopStore,
    subscription: &Subscription,
) -> Result<(), StoreError> {
    let subscribe = query(include_str!("sql/subscribe.sql"))
        .bind(&subscription.name)
        .bind(subscription.topic.code())
        .bind(Stream::Execution.shard_count());
    loops.execute(subscribe).await.map(drop)
}

pub(super) async fn claim(
    loops: &LoopStore,
    subscription: &Subscription,
    holder: &str,
    lease: Duration,
    limit: i32,
) -> Result<Vec<Row>, StoreError> {
    let claim = query(include_str!("sql/claim.sql"))
        .bind(&subscription.name)
        .bind(subscription.topic.code())
        .bind(holder)
        .bind(lease.as_secs_f64())
        .bind(limit);
    loops.all(claim).await
}

pub(super) async fn settle(
    loops: &LoopStore,
    subscription: &Subscription,
    holder: &str,
    settled: &Settled,
) -> Result<(), StoreError> {
    let failed = &settled.failed;
    let versions: Vec<Version> = failed.iter().map(|failed| failed.version).collect();
    let mut settle = query(include_str!("sql/settle.sql"))
        .bind(&subscription.name)
        .bind(subscription.topic.code())
        .bind(holder);
    for versions in [&settled.cursors, &settled.retried, &versions] {
        settle = settle
            .bind(
                versions
                    .iter()
                    .map(|version| version.shard)
                    .collect::<Vec<_>>(),
            )
            .bind(
                versions
                    .iter()
                    .map(|version| version.position)
                    .collect::<Vec<_>>(),
            )
            .bind(
                versions
                    .iter()
                    .map(|version| version.place)
                    .collect::<Vec<_>>(),
            );
    }
    let settle = settle
        .bind(
            failed
                .iter()
                .map(|failed| failed.tries.cast_signed())
                .collect::<Vec<_>>(),
        )
        .bind(
            failed
                .iter()
                .map(|failed| failed.error.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(
            failed
                .iter()
                .map(|failed| failed.delay.map(|delay| delay.as_secs_f64()))
                .collect::<Vec<_>>(),
        );
    loops.execute(settle).await.map(drop)
}

/// The time until a message is due for its next try.
pub(super) async fn next_due(
    loops: &LoopStore,
    subscription: &Subscription,
) -> Result<Option<Duration>, StoreError> {
    let select = query(include_str!("sql/next_due.sql"))
        .bind(&subscription.name)
        .bind(subscription.topic.code());
    let rows: Vec<(Option<f64>,)> = loops.all(select).await?;
    Ok(rows
        .into_iter()
        .find_map(|(seconds,)| seconds)
        .map(|seconds| Duration::from_secs_f64(seconds.max(0.0))))
}

pub(super) async fn has_subscribers(loops: &LoopStore, topic: Topic) -> Result<bool, StoreError> {
    let select = query(include_str!("sql/has_subscribers.sql")).bind(topic.code());
    let rows: Vec<(bool,)> = loops.all(select).await?;
    Ok(rows.first().is_some_and(|(found,)| *found))
}

/// Wakes the consumers that wait for messages of the topic.
pub async fn ring(loops: &LoopStore, topic: Topic) -> Result<(), StoreError> {
    loops
        .execute(
            query(include_str!("sql/ring.sql"))
                .bind(super::CHANNEL)
                .bind(topic.name()),
        )
        .await
        .map(drop)
}

/// Makes a message that was set aside due again; returns false if there is no such
/// message. The caller rings the doorbell after the commit.
pub async fn replay(
    tx: &mut Tx,
    subscription: &Subscription,
    version: Version,
) -> Result<bool, StoreError> {
    let replay = query(include_str!("sql/replay.sql"))
        .bind(&subscription.name)
        .bind(subscription.topic.code())
        .bind(version.shard)
        .bind(version.position)
        .bind(version.place);
    let (found,): (bool,) = tx.one(replay).await?;
    Ok(found)
}

/// Deletes a batch of old messages that every subscription has passed, and returns their number.
pub async fn expire(
    loops: &LoopStore,
    topic: Topic,
    older_than: Duration,
    limit: i32,
) -> Result<u64, StoreError> {
    let expire = query(include_str!("sql/expire.sql"))
        .bind(topic.code())
        .bind(older_than.as_secs_f64())
        .bind(limit);
    let rows: Vec<(i64,)> = loops.all(expire).await?;
    Ok(rows.first().map_or(0, |(gone,)| gone.unsigned_abs()))
}
