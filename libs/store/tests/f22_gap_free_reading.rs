//! Readers skip nothing: late commits, killed writers and open transactions do not keep a committed
//! event from being read exactly once and in order. (F22)

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod common;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{OwnPostgres, at, connect, count, event, is_full, new_id, shard};
use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use servo_local::PostgresOptions;
use servo_model::{EventType, Position, Service, ShardId, Stream};
use servo_store::{AppendResult, LedgerReader, LoopTx, NewEvent, Store, StoreError, query};
use sqlx::{Connection, PgConnection};
use tokio::sync::{Mutex, watch};
use uuid::Uuid;

const WRITERS: usize = 32;
const READERS: usize = 4;
const KIND: EventType = EventType::TaskFinished;

/// The shard and position of each committed event, as returned to its writer.
type Committed = HashMap<Uuid, (ShardId, Position)>;

/// The events that the readers read from each shard, in order.
type EventsRead = HashMap<ShardId, Vec<Uuid>>;

async fn own_store(loops_connections: u32) -> (OwnPostgres, Store) {
    let own = OwnPostgres::start(PostgresOptions::without_durability()).await;
    let mut config = own.config();
    config.loops_connections = loops_connections;
    config.acquire_timeout_ms = 30_000;
    let store = Store::connect(Service::Scheduler, &config).unwrap();
    (own, store)
}

#[tokio::test(flavor = "multi_thread")]
async fn f22_every_committed_event_is_read_once_and_in_order() {
    let (own, store) = own_store(48).await;
    let events = count(200_000, 4_000);
    let (passes, on_pass) = watch::channel(0u64);
    let (end, ended) = watch::channel(false);
    let readers: Vec<_> = (0..READERS)
        .map(|n| {
            tokio::spawn(read_until_end(
                store.reader(),
                n,
                passes.clone(),
                ended.clone(),
            ))
        })
        .collect();
    // Waiters on a pass fail once there are no readers left.
    drop(passes);
    let committed = Arc::new(Mutex::new(Committed::new()));
    let writers = (0..WRITERS).map(|n| {
        let writer = Writer {
            store: store.clone(),
            admin_url: own.postgres.admin_url(),
            random: StdRng::seed_from_u64(n as u64),
            reader_passes: on_pass.clone(),
            committed: committed.clone(),
        };
        tokio::spawn(writer.write(events / WRITERS))
    });
    for writer in join_all(writers).await {
        writer.unwrap();
    }
    end.send(true).unwrap();
    let mut events_read = EventsRead::new();
    for reader in readers {
        events_read.extend(reader.await.unwrap());
    }
    let committed = committed.lock().await;
    assert!(
        committed.len() >= events,
        "{} of {events} events committed",
        committed.len()
    );
    assert_same(&events_read, &committed);
}

/// Compares the readers' events, position by position, with the writers' results.
fn assert_same(events_read: &EventsRead, committed: &Committed) {
    assert_eq!(
        events_read.values().map(Vec::len).sum::<usize>(),
        committed.len()
    );
    for (shard, ids) in events_read {
        for (position, id) in (1..).map(at).zip(ids) {
            let expected = committed
                .get(id)
                .unwrap_or_else(|| panic!("{id} was read but never committed"));
            assert_eq!(*expected, (*shard, position), "{id}");
        }
    }
}

/// Reads its share of the shards repeatedly, and once more after the end, so that nothing is left.
async fn read_until_end(
    reader: LedgerReader,
    first: usize,
    passes: watch::Sender<u64>,
    ended: watch::Receiver<bool>,
) -> EventsRead {
    let mut events_read = EventsRead::new();
    loop {
        let last_pass = *ended.borrow();
        for shard in Stream::Execution
            .shards()
            .filter(|shard| shard.index() % READERS == first)
        {
            let ids = events_read.entry(shard).or_default();
            loop {
                // A gap is an error, so this also checks that positions are consecutive.
                let events = reader
                    .read(Stream::Execution, shard, at(ids.len() as u32), 500)
                    .await
                    .unwrap();
                if events.is_empty() {
                    break;
                }
                ids.extend(events.iter().map(|event| event.event_id));
            }
        }
        passes.send_modify(|passes| *passes += 1);
        if last_pass {
            return events_read;
        }
    }
}

struct Writer {
    store: Store,
    admin_url: String,
    random: StdRng,
    reader_passes: watch::Receiver<u64>,
    committed: Arc<Mutex<Committed>>,
}

impl Writer {
    async fn write(mut self, events: usize) {
        let mut admin = connect(&self.admin_url).await;
        let mut left = events;
        while left > 0 {
            let batch = self.batch(left);
            let Ok(mut tx) = self.store.loops().begin().await else {
                continue;
            };
            let Ok(answers) = tx.append(&batch).await else {
                continue;
            };
            assert!(
                answers
                    .iter()
                    .all(|answer| answer.result == AppendResult::New)
            );
            match self.random.random_range(0..10) {
                0 => self.wait_for_readers().await,
                1 => {
                    kill(&mut admin, &mut tx).await;
                    assert!(matches!(
                        tx.commit().await.unwrap_err(),
                        StoreError::Unavailable(_)
                    ));
                    continue;
                }
                2 => continue,
                _ => {}
            }
            // A writer that waited too long was ended by its role's timeout; it committed nothing.
            let Ok(()) = tx.commit().await else { continue };
            left -= batch.len();
            let positions = answers.iter().map(|answer| (answer.shard, answer.position));
            self.committed
                .lock()
                .await
                .extend(batch.iter().map(|event| event.event_id).zip(positions));
        }
    }

    fn batch(&mut self, most: usize) -> Vec<NewEvent> {
        let size = self.random.random_range(1..=most.min(20));
        (0..size)
            .map(|_| {
                let shard = shard(self.random.random_range(0..64));
                event(KIND, shard, "acme", &new_id().to_string())
            })
            .collect()
    }

    /// Waits until readers have passed without seeing the uncommitted events.
    async fn wait_for_readers(&mut self) {
        let now = *self.reader_passes.borrow();
        self.reader_passes
            .wait_for(|passes| *passes > now + READERS as u64)
            .await
            .unwrap();
    }
}

async fn kill(admin: &mut PgConnection, tx: &mut LoopTx) {
    let (pid,): (i32,) = tx.one(query("SELECT pg_backend_pid()")).await.unwrap();
    sqlx::query("SELECT pg_terminate_backend($1, 5000)")
        .bind(pid)
        .execute(admin)
        .await
        .unwrap();
}

/// An open transaction with its own rows and locks does not delay readers of other shards.
#[tokio::test(flavor = "multi_thread")]
async fn f22_an_open_transaction_elsewhere_delays_no_reader() {
    let (own, store) = own_store(8).await;
    // An administrator's session has no timeout.
    let mut admin = connect(&own.postgres.admin_url()).await;
    let mut open = admin.begin().await.unwrap();
    sqlx::raw_sql(
        "SELECT pg_current_xact_id(); INSERT INTO gateway.tenants (tenant, state) VALUES ('late', 1);
         SELECT FROM ledger.shards WHERE stream = 1 AND shard = 63 FOR UPDATE",
    )
    .execute(&mut *open)
    .await
    .unwrap();
    let until = Instant::now()
        + if is_full() {
            Duration::from_secs(60)
        } else {
            Duration::from_secs(1)
        };
    let reader = store.reader();
    let mut rounds = 0;
    while rounds < 100 || Instant::now() < until {
        let shard = shard(rounds % 63);
        let new = event(KIND, shard, "acme", &format!("round {rounds}"));
        let answers = store.ledger().append(vec![new.clone()]).await.unwrap();
        let before = Position::new(answers[0].position.get() - 1).unwrap();
        let read = reader
            .read(Stream::Execution, shard, before, 10)
            .await
            .unwrap();
        assert_eq!(
            read.iter().map(|event| event.event_id).collect::<Vec<_>>(),
            [new.event_id]
        );
        rounds += 1;
    }
    open.rollback().await.unwrap();
}

/// The same events appended by concurrent writers are stored once, on whichever shard was first.
#[tokio::test(flavor = "multi_thread")]
async fn f22_racing_writers_append_the_same_events_once() {
    let (own, store) = own_store(8).await;
    let second_store = Store::connect(Service::Scheduler, &own.config()).unwrap();
    let events = count(20_000, 1_000);
    let originals: Vec<NewEvent> = (0..events)
        .map(|n| event(KIND, shard(n as u32 % 64), "acme", &format!("race {n}")))
        .collect();
    let copies = |shift: u32| -> Vec<NewEvent> {
        let copy = |e: &NewEvent| NewEvent {
            event_id: new_id(),
            shard: shard((u32::from(e.shard) + shift) % 64),
            ..e.clone()
        };
        originals.iter().map(copy).collect()
    };
    let racers = [
        (&store, originals.clone()),
        (&second_store, copies(0)),
        (&store, copies(1)),
        (&second_store, copies(7)),
    ];
    let answers = join_all(
        racers
            .iter()
            .map(|(store, events)| append_in_chunks(store, events)),
    )
    .await;
    for n in 0..events {
        let outcomes: Vec<AppendResult> = answers.iter().map(|answers| answers[n]).collect();
        let new: Vec<usize> = (0..4)
            .filter(|racer| outcomes[*racer] == AppendResult::New)
            .collect();
        assert_eq!(new.len(), 1, "event {n}: {outcomes:?}");
        let winner = racers[new[0]].1[n].event_id;
        let rest = outcomes
            .iter()
            .filter(|outcome| **outcome == AppendResult::Duplicate { event_id: winner });
        assert_eq!(rest.count(), 3, "event {n}: {outcomes:?}");
    }
    let other_body = NewEvent {
        event_id: new_id(),
        payload: b"other".to_vec(),
        ..originals[0].clone()
    };
    let answer = store.ledger().append(vec![other_body]).await.unwrap();
    assert!(matches!(answer[0].result, AppendResult::Conflict { .. }));
    let stored: i64 = sqlx::query_scalar("SELECT count(*) FROM ledger.events")
        .fetch_one(&mut connect(&own.postgres.admin_url()).await)
        .await
        .unwrap();
    assert_eq!(stored as usize, events);
}

async fn append_in_chunks(store: &Store, events: &[NewEvent]) -> Vec<AppendResult> {
    let mut outcomes = Vec::new();
    for chunk in events.chunks(40) {
        let answers = store.ledger().append(chunk.to_vec()).await.unwrap();
        outcomes.extend(answers.iter().map(|answer| answer.result));
    }
    outcomes
}
