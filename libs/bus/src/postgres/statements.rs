//! The statements of the bus, one function each.

use std::time::Duration;

use servo_model::Stream;
use servo_store::{LoopStore, StoreError, Tx, query};

use super::Row;
use crate::core::Settled;
use crate::port::{Subscription, Topic, Version};

pub(super) async fn subscribe(loops: &LoopStore, to: &Subscription) -> Result<(), StoreError> {
    let subscribe = query(include_str!("sql/subscribe.sql"))
        .bind(&to.name)
        .bind(to.topic.code())
        .bind(Stream::Execution.shards());
    loops.execute(subscribe).await.map(drop)
}

pub(super) async fn claim(
    loops: &LoopStore,
    of: &Subscription,
    holder: &str,
    lease: Duration,
    at_most: i32,
) -> Result<Vec<Row>, StoreError> {
    let claim = query(include_str!("sql/claim.sql"))
        .bind(&of.name)
        .bind(of.topic.code())
        .bind(holder)
        .bind(lease.as_secs_f64())
        .bind(at_most);
    loops.all(claim).await
}

pub(super) async fn settle(
    loops: &LoopStore,
    of: &Subscription,
    holder: &str,
    settled: &Settled,
) -> Result<(), StoreError> {
    let parked = &settled.parked;
    let versions: Vec<Version> = parked.iter().map(|parked| parked.version).collect();
    let mut settle = query(include_str!("sql/settle.sql"))
        .bind(&of.name)
        .bind(of.topic.code())
        .bind(holder);
    for versions in [&settled.cursors, &settled.digested, &versions] {
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
            parked
                .iter()
                .map(|parked| parked.tries.cast_signed())
                .collect::<Vec<_>>(),
        )
        .bind(
            parked
                .iter()
                .map(|parked| parked.error.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(
            parked
                .iter()
                .map(|parked| parked.delay.map(|delay| delay.as_secs_f64()))
                .collect::<Vec<_>>(),
        );
    loops.execute(settle).await.map(drop)
}

/// How long until a message is to be tried again.
pub(super) async fn next_due(
    loops: &LoopStore,
    of: &Subscription,
) -> Result<Option<Duration>, StoreError> {
    let select = query(include_str!("sql/next_due.sql"))
        .bind(&of.name)
        .bind(of.topic.code());
    let rows: Vec<(Option<f64>,)> = loops.all(select).await?;
    Ok(rows
        .into_iter()
        .find_map(|(seconds,)| seconds)
        .map(|seconds| Duration::from_secs_f64(seconds.max(0.0))))
}

pub(super) async fn is_listened_to(loops: &LoopStore, topic: Topic) -> Result<bool, StoreError> {
    let select = query(include_str!("sql/is_listened_to.sql")).bind(topic.code());
    let rows: Vec<(bool,)> = loops.all(select).await?;
    Ok(rows.first().is_some_and(|(listened,)| *listened))
}

/// Wakes whoever waits for messages.
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

/// Gives a message that was set aside to its consumer once more. Whether there is one. Whoever commits it rings.
pub async fn replay(tx: &mut Tx, of: &Subscription, version: Version) -> Result<bool, StoreError> {
    let replay = query(include_str!("sql/replay.sql"))
        .bind(&of.name)
        .bind(of.topic.code())
        .bind(version.shard)
        .bind(version.position)
        .bind(version.place);
    let (found,): (bool,) = tx.one(replay).await?;
    Ok(found)
}

/// Deletes a batch of messages that are old and that every subscription has passed. How many there were.
pub async fn expire(
    loops: &LoopStore,
    topic: Topic,
    older_than: Duration,
    at_most: i32,
) -> Result<u64, StoreError> {
    let expire = query(include_str!("sql/expire.sql"))
        .bind(topic.code())
        .bind(older_than.as_secs_f64())
        .bind(at_most);
    let rows: Vec<(i64,)> = loops.all(expire).await?;
    Ok(rows.first().map_or(0, |(gone,)| gone.unsigned_abs()))
}
