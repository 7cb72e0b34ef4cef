//! Acknowledged means durable: Postgres is killed with -9 under append load and started again; no acknowledged event
//! is missing, none is there twice.

#![cfg(test)]

mod common;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{OwnPostgres, count, event, new_id};
use servo_local::PostgresOptions;
use servo_model::{EventType, Service, Stream};
use servo_store::{Appended, NewEvent, Outcome, Store};
use tokio::sync::watch;

const CALLERS: usize = 64;
/// How much is acknowledged between two kills.
const EVENTS_PER_CYCLE: usize = 2_000;

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_appends_survive_kill_9_of_postgres() {
    // Every default of the demo, fsync and synchronous commit among them.
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
    let mut told = HashMap::new();
    for caller in callers {
        told.extend(caller.await.unwrap());
    }
    let found = read_all(&store).await;
    for (key, answer) in &told {
        let places = found
            .get(key)
            .unwrap_or_else(|| panic!("{key} was acknowledged and is missing"));
        assert_eq!(*places, [(answer.shard, answer.position)], "{key}");
    }
    assert!(
        found.values().all(|places| places.len() == 1),
        "an event appears twice"
    );
}

/// One event at a time; an unanswered one is repeated with the same id, as the contract says.
async fn append_until(
    store: Store,
    acknowledged: Arc<watch::Sender<usize>>,
    stop: Arc<AtomicBool>,
) -> Vec<(String, Appended)> {
    let mut told = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let id = new_id();
        let shard = (id.as_bytes()[15] % 64) as i16;
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
        assert_eq!(answer.outcome, Outcome::New);
        told.push((own.idempotency_key, answer));
        acknowledged.send_modify(|count| *count += 1);
    }
    told
}

/// Every event's places by its key; the reader fails on a hole.
async fn read_all(store: &Store) -> HashMap<String, Vec<(i16, i64)>> {
    let mut found: HashMap<String, Vec<(i16, i64)>> = HashMap::new();
    let reader = store.reader();
    for shard in 0..Stream::Execution.shards() {
        let mut after = 0;
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
