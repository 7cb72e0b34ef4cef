//! Acknowledged means durable: Postgres is killed with SIGKILL under append load and restarted;
//! every acknowledged event is stored exactly once.

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod common;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{OwnPostgres, count, event, new_id, shard};
use servo_local::PostgresOptions;
use servo_model::{EventType, Position, Service, ShardId, Stream};
use servo_store::{AppendResult, Appended, NewEvent, Store};
use tokio::sync::watch;

const CALLERS: usize = 64;
/// The number of events acknowledged between two kills.
const EVENTS_PER_CYCLE: usize = 2_000;

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_appends_survive_kill_9_of_postgres() {
    // All defaults of the demo, including fsync and synchronous commit.
    let mut own = OwnPostgres::start(PostgresOptions::default()).await;
    let store = Store::connect(Service::Scheduler, &own.config()).unwrap();
    let acknowledged = Arc::new(watch::Sender::new(0usize));
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            tokio::spawn(append_until(
                store.clone(),
                acknowledged.clone(),
                stop.clone(),
            ))
        })
        .collect();
    let mut progress = acknowledged.subscribe();
    for cycle in 1..=count(20, 2) {
        progress
            .wait_for(|count| *count >= cycle * EVENTS_PER_CYCLE)
            .await
            .unwrap();
        own = tokio::task::spawn_blocking(move || {
            own.postgres.kill_9().unwrap();
            own.postgres.restart().unwrap();
            own
        })
        .await
        .unwrap();
    }
    let after_last_kill = *progress.borrow() + EVENTS_PER_CYCLE;
    progress
        .wait_for(|count| *count >= after_last_kill)
        .await
        .unwrap();
    stop.store(true, Ordering::SeqCst);
    let mut acknowledged_events = HashMap::new();
    for caller in callers {
        acknowledged_events.extend(caller.await.unwrap());
    }
    let found = read_all(&store).await;
    for (key, answer) in &acknowledged_events {
        let positions = found
            .get(key)
            .unwrap_or_else(|| panic!("{key} was acknowledged and is missing"));
        assert_eq!(*positions, [(answer.shard, answer.position)], "{key}");
    }
    assert!(
        found.values().all(|positions| positions.len() == 1),
        "an event appears twice"
    );
}

/// Appends one event at a time; an event without a response is retried with the same id, as the
/// contract requires.
async fn append_until(
    store: Store,
    acknowledged: Arc<watch::Sender<usize>>,
    stop: Arc<AtomicBool>,
) -> Vec<(String, Appended)> {
    let mut acknowledged_events = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let id = new_id();
        let shard = shard(u32::from(id.as_bytes()[15] % 64));
        let own = NewEvent {
            event_id: id,
            ..event(EventType::TaskFinished, shard, "acme", &id.to_string())
        };
        let answer = loop {
            match store.ledger().append(vec![own.clone()]).await {
                Ok(mut answers) => break answers.remove(0),
                Err(error) => eprintln!("repeated: {error}"),
            }
        };
        assert_eq!(answer.result, AppendResult::New);
        acknowledged_events.push((own.idempotency_key, answer));
        acknowledged.send_modify(|count| *count += 1);
    }
    acknowledged_events
}

/// Returns the positions of every event by its key; the reader fails on a gap.
async fn read_all(store: &Store) -> HashMap<String, Vec<(ShardId, Position)>> {
    let mut found: HashMap<String, Vec<(ShardId, Position)>> = HashMap::new();
    let reader = store.reader();
    for shard in Stream::Execution.shards() {
        let mut after = Position::START;
        loop {
            let events = reader
                .read(Stream::Execution, shard, after, 1_000)
                .await
                .unwrap();
            let Some(last) = events.last() else { break };
            after = last.position;
            for event in events {
                found
                    .entry(event.idempotency_key)
                    .or_default()
                    .push((shard, event.position));
            }
        }
    }
    found
}
