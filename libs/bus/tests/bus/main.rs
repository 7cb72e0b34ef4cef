//! The bus on a real Postgres: no message is skipped, a bad message does not block others, and the
//! death of a consumer loses nothing.

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use servo_bus::{
    Acknowledgement, Batch, BusDoorbell, EventBus, Message, PostgresBus, Subscription, Topic,
    Version, consume, expire, replay,
};
use servo_local::wait::until_true;
use servo_local::{Postgres, PostgresOptions, TestDatabase};
use servo_model::{EventType, Position, Service, ShardId, Stream};
use servo_store::{DatabaseConfig, LoopStore, NewEvent, Store, query};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use uuid::Uuid;

const SHARD: ShardId = ShardId::new(7).unwrap();

fn store(database: &TestDatabase, service: Service) -> Store {
    Store::connect(
        service,
        &DatabaseConfig::new(database.service_url(), database.password()),
    )
    .unwrap()
}

fn subscription() -> Subscription {
    Subscription {
        name: "quota.test".to_owned(),
        topic: Topic::Runs,
    }
}

fn bus(store: &Store, holder: &str) -> PostgresBus {
    PostgresBus::new(store, holder)
        .with_intervals(Duration::from_millis(50), Duration::from_secs(1))
}

/// Publishes as a fold does: appends an event, which locks its shard and gives the message its
/// position, and commits after `delay`.
async fn publish(store: &Store, shard: ShardId, payloads: &[Vec<u8>], delay: Duration) -> Position {
    let mut tx = store.loops().begin().await.unwrap();
    let id = Uuid::from_u128(ulid::Ulid::generate().into());
    let event = NewEvent {
        event_id: id,
        kind: EventType::TaskStarted,
        version: 1,
        shard,
        tenant: "acme".parse().unwrap(),
        workspace: "main".to_owned(),
        idempotency_key: id.to_string(),
        correlation_id: Some(id),
        causation_id: None,
        payload: Vec::new(),
    };
    let position = tx.append(&[event]).await.unwrap()[0].position;
    tokio::time::sleep(delay).await;
    let publish = query("SELECT bus.publish(1::smallint, $1, $2, $3, $4, $5, $6)")
        .bind(vec![shard; payloads.len()])
        .bind(vec![position; payloads.len()])
        .bind(vec![id; payloads.len()])
        .bind(vec!["acme"; payloads.len()])
        .bind(vec!["main"; payloads.len()])
        .bind(payloads);
    tx.execute(publish).await.unwrap();
    tx.commit().await.unwrap();
    position
}

async fn publish_all(store: &Store, payloads: impl Iterator<Item = Vec<u8>>) {
    for payload in payloads {
        publish(store, SHARD, &[payload], Duration::ZERO).await;
    }
}

/// Consumes in the background into a list; the handler fails for payloads that begin with `bad`.
fn reading(store: &Store, holder: &str) -> (Arc<Mutex<Vec<Message>>>, tokio::task::JoinHandle<()>) {
    let (bus, read) = (bus(store, holder), Arc::new(Mutex::new(Vec::new())));
    let kept = read.clone();
    let task = tokio::spawn(async move {
        let handle = |message: Message| {
            let good = !message.payload.starts_with(b"bad");
            if good {
                kept.lock().unwrap().push(message);
            }
            async move {
                if good {
                    Ok(())
                } else {
                    Err("it is garbage".to_owned())
                }
            }
        };
        consume(&bus, &subscription(), handle).await;
    });
    (read, task)
}

async fn poison(loops: &LoopStore) -> Vec<(Position, i32, String)> {
    let select =
        "SELECT position, tries, error FROM bus.parked WHERE due_at IS NULL ORDER BY position";
    loops.all(query(select)).await.unwrap()
}

struct World {
    database: TestDatabase,
    scheduler: Store,
    quota: Store,
}

impl World {
    async fn start() -> World {
        let database = TestDatabase::create().await.unwrap();
        let (scheduler, quota) = (
            store(&database, Service::Scheduler),
            store(&database, Service::Quota),
        );
        bus(&quota, "first")
            .subscribe(&subscription())
            .await
            .unwrap();
        World {
            database,
            scheduler,
            quota,
        }
    }

    async fn replay(&self, version: Version) -> bool {
        let mut tx = self.scheduler.loops().begin().await.unwrap();
        let found = replay(&mut tx, &subscription(), version).await.unwrap();
        tx.commit().await.unwrap();
        found
    }
}

const WRITERS: usize = 64;
/// The number of messages per transaction.
const MESSAGES: usize = 20;

/// A million messages in `make chaos`, a hundredth of that in `make test`.
fn transactions_per_writer() -> usize {
    let messages = if std::env::var_os("SERVO_FULL").is_some() {
        1_000_000
    } else {
        10_000
    };
    usize::div_ceil(messages, WRITERS * MESSAGES)
}

/// Writers that hold their transactions open need their own cluster.
async fn own_cluster() -> (Postgres, TempDir, DatabaseConfig) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cluster");
    let started = tokio::task::spawn_blocking(move || {
        Postgres::start_with(&path, PostgresOptions::without_durability())
    });
    let postgres = started.await.unwrap().unwrap();
    servo_store::migrate::migrate(&postgres.admin_url(), postgres.password())
        .await
        .unwrap();
    let url = format!("postgres://127.0.0.1:{}/postgres", postgres.port());
    let mut config = DatabaseConfig::new(url, postgres.password().to_owned());
    config.loops_connections = 66;
    config.acquire_timeout_ms = 60_000;
    (postgres, dir, config)
}

#[tokio::test(flavor = "multi_thread")]
async fn f22_no_message_is_skipped_when_commits_are_late() {
    let (_postgres, _dir, config) = own_cluster().await;
    let scheduler = Store::connect(Service::Scheduler, &config).unwrap();
    let quota = Store::connect(
        Service::Quota,
        &DatabaseConfig {
            loops_connections: 4,
            ..config
        },
    )
    .unwrap();
    bus(&quota, "first")
        .subscribe(&subscription())
        .await
        .unwrap();
    let (read, reader) = reading(&quota, "reader");
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = scheduler.clone();
            tokio::spawn(async move {
                let mut published = Vec::new();
                for n in 0..transactions_per_writer() {
                    let shard = Stream::Execution.shard(rand::random_range(0..64)).unwrap();
                    let delay = rand::random_range(0..10);
                    let payloads: Vec<Vec<u8>> = (0..MESSAGES)
                        .map(|m| format!("{writer}-{n}-{m}").into_bytes())
                        .collect();
                    publish(&store, shard, &payloads, Duration::from_millis(delay)).await;
                    published.extend(payloads);
                }
                published
            })
        })
        .collect();
    let mut published = Vec::new();
    for task in tasks {
        published.extend(task.await.unwrap());
    }
    until_true("all messages to be read", async || {
        read.lock().unwrap().len() >= published.len()
    })
    .await;
    reader.abort();
    let mut seen: Vec<Vec<u8>> = read
        .lock()
        .unwrap()
        .iter()
        .map(|message| message.payload.clone())
        .collect();
    seen.sort_unstable();
    published.sort_unstable();
    assert_eq!(
        seen.len(),
        published.len(),
        "without crashes each message is delivered once"
    );
    assert!(seen == published);
}

#[tokio::test(flavor = "multi_thread")]
async fn f27_bad_message_is_set_aside_after_five_tries_and_others_are_delivered() {
    let world = World::start().await;
    let good = (0..99).map(|n| format!("good {n}").into_bytes());
    publish_all(&world.scheduler, good.clone().take(50)).await;
    publish_all(&world.scheduler, std::iter::once(b"bad".to_vec())).await;
    publish_all(&world.scheduler, good.skip(50)).await;
    let (read, reader) = reading(&world.quota, "reader");
    until_true("the good messages to be delivered", async || {
        read.lock().unwrap().len() == 99
    })
    .await;
    until_true("the bad message to be set aside", async || {
        !poison(world.scheduler.loops()).await.is_empty()
    })
    .await;
    let aside = poison(world.scheduler.loops()).await;
    assert_eq!(aside.len(), 1);
    assert_eq!((aside[0].1, aside[0].2.as_str()), (5, "it is garbage"));
    reader.abort();
    // A replay delivers it again, for example after the consumer was fixed.
    let version = Version {
        shard: SHARD,
        position: aside[0].0,
        place: 0,
    };
    assert!(world.replay(version).await);
    let fixed = bus(&world.quota, "fixed");
    let batch = loop {
        let batch = fixed.receive(&subscription()).await.unwrap();
        if !batch.messages.is_empty() {
            break batch;
        }
    };
    assert_eq!(batch.messages[0].payload, b"bad");
    fixed
        .settle(&subscription(), batch, vec![Acknowledgement::Ack])
        .await
        .unwrap();
    assert!(poison(world.scheduler.loops()).await.is_empty());
    let absent = Version {
        shard: SHARD,
        position: Position::new(9_999).unwrap(),
        place: 0,
    };
    assert!(!world.replay(absent).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_consumer_loses_no_messages() {
    let world = World::start().await;
    publish_all(&world.scheduler, (0..10_u8).map(|n| vec![n])).await;
    let dying = bus(&world.quota, "dying");
    let taken = dying.receive(&subscription()).await.unwrap();
    assert_eq!(taken.messages.len(), 10);
    let other = bus(&world.quota, "other");
    assert!(
        other
            .receive(&subscription())
            .await
            .unwrap()
            .messages
            .is_empty(),
        "they belong to the first consumer"
    );
    drop(dying);
    let again: Batch = loop {
        let batch = other.receive(&subscription()).await.unwrap();
        if !batch.messages.is_empty() {
            break batch;
        }
    };
    let payloads = |batch: &Batch| {
        batch
            .messages
            .iter()
            .map(|m| m.payload.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(payloads(&again), payloads(&taken));
    let results = vec![Acknowledgement::Ack; again.messages.len()];
    other.settle(&subscription(), again, results).await.unwrap();
    assert!(
        other
            .receive(&subscription())
            .await
            .unwrap()
            .messages
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn f26_late_results_after_a_lost_lease_change_nothing() {
    let world = World::start().await;
    publish_all(&world.scheduler, (0..3_u8).map(|n| vec![n])).await;
    let slow = bus(&world.quota, "slow");
    let taken = slow.receive(&subscription()).await.unwrap();
    let other = bus(&world.quota, "other");
    until_true("the lease to expire", async || {
        !other
            .receive(&subscription())
            .await
            .unwrap()
            .messages
            .is_empty()
    })
    .await;
    let results = vec![Acknowledgement::Nack("too late".into()); taken.messages.len()];
    slow.settle(&subscription(), taken, results).await.unwrap();
    let parked: Vec<(i64,)> = world
        .scheduler
        .loops()
        .all(query("SELECT count(*) FROM bus.parked"))
        .await
        .unwrap();
    assert_eq!(parked, [(0,)], "they belong to another consumer by now");
}

#[tokio::test(flavor = "multi_thread")]
async fn doorbell_wakes_a_sleeping_consumer() {
    let world = World::start().await;
    let sleeper = PostgresBus::new(&world.quota, "sleeper")
        .with_intervals(Duration::from_secs(3_600), Duration::from_secs(60));
    let doorbell = BusDoorbell::start(world.scheduler.loops().clone(), Topic::Runs);
    doorbell.refresh(world.scheduler.loops()).await.unwrap();
    let received = tokio::spawn(async move {
        loop {
            let batch = sleeper.receive(&subscription()).await.unwrap();
            if !batch.messages.is_empty() {
                return batch.messages[0].attributes();
            }
        }
    });
    publish_all(&world.scheduler, std::iter::once(b"news".to_vec())).await;
    until_true("the message to be received", async || {
        doorbell.ring();
        received.is_finished()
    })
    .await;
    let attributes = received.await.unwrap();
    assert!(
        attributes.contains(&("type", "servo.mesh.v1.RunChanged".to_owned())),
        "{attributes:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_subscriptions_are_rejected_and_consumed_messages_expire() {
    let world = World::start().await;
    let foreign = Subscription {
        name: "backfill.x".to_owned(),
        topic: Topic::Runs,
    };
    assert!(bus(&world.quota, "q").subscribe(&foreign).await.is_err());
    let select = query("SELECT bus.subscribe('backfill.x', 1::smallint, 64::smallint)");
    assert!(
        world.quota.loops().execute(select).await.is_err(),
        "Postgres rejects it too"
    );
    publish_all(&world.scheduler, (0..10_u8).map(|n| vec![n])).await;
    let loops = world.scheduler.loops();
    assert_eq!(
        expire(loops, Topic::Runs, Duration::ZERO, 100)
            .await
            .unwrap(),
        0,
        "no subscription has read them"
    );
    let reader = bus(&world.quota, "reader");
    let batch = reader.receive(&subscription()).await.unwrap();
    let results = vec![Acknowledgement::Ack; batch.messages.len()];
    reader
        .settle(&subscription(), batch, results)
        .await
        .unwrap();
    assert_eq!(
        expire(loops, Topic::Runs, Duration::from_secs(60), 100)
            .await
            .unwrap(),
        0,
        "they are too new"
    );
    assert_eq!(
        expire(loops, Topic::Runs, Duration::ZERO, 6).await.unwrap(),
        6,
        "in batches"
    );
    assert_eq!(
        expire(loops, Topic::Runs, Duration::ZERO, 6).await.unwrap(),
        4
    );
    let mut admin = PgConnection::connect(&world.database.admin_url())
        .await
        .unwrap();
    let left: (i64,) = sqlx::query_as("SELECT count(*) FROM bus.messages")
        .fetch_one(&mut admin)
        .await
        .unwrap();
    assert_eq!(left, (0,));
}
