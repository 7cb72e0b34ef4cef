//! The queue on a real Postgres, pushing to a real HTTP server.

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod receiver;

use std::collections::BTreeSet;
use std::time::Duration;

use receiver::Receiver;
use servo_local::TestDatabase;
use servo_local::wait::until_true;
use servo_model::{Service, Timestamp};
use servo_queue::{
    Created, NewEntry, PostgresQueue, Pusher, QueueError, QueueSettings, Retry, TaskQueue,
};
use servo_store::{DatabaseConfig, Store, sqlx};
use sqlx::{Connection, PgConnection};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Long enough for any machine; ends a test that hangs.
const QUEUE: &str = "dispatch-0";

struct World {
    database: TestDatabase,
    queue: PostgresQueue,
}

impl World {
    async fn start(change: impl Fn(&mut QueueSettings)) -> World {
        let database = TestDatabase::create().await.unwrap();
        let mut settings = QueueSettings::new(QUEUE);
        settings.retry = Retry {
            min_backoff: Duration::from_millis(10),
            ..settings.retry
        };
        change(&mut settings);
        let queue = queue(&database, settings).await;
        World { database, queue }
    }

    /// A queue as another process would have it: only the database is shared.
    async fn other(&self, change: impl Fn(&mut QueueSettings)) -> PostgresQueue {
        let mut settings = QueueSettings::new(QUEUE);
        change(&mut settings);
        queue(&self.database, settings).await
    }

    /// The number of entries that satisfy the condition.
    async fn count(&self, condition: &str) -> i64 {
        let mut connection = PgConnection::connect(&self.database.admin_url())
            .await
            .unwrap();
        let count = format!("SELECT count(*) FROM dispatcher.queue_entries WHERE {condition}");
        sqlx::query_scalar(sqlx::AssertSqlSafe(count))
            .fetch_one(&mut connection)
            .await
            .unwrap()
    }

    async fn change(&self, statement: &'static str) {
        let mut connection = PgConnection::connect(&self.database.admin_url())
            .await
            .unwrap();
        sqlx::raw_sql(statement)
            .execute(&mut connection)
            .await
            .unwrap();
    }
}

async fn queue(database: &TestDatabase, settings: QueueSettings) -> PostgresQueue {
    let config = DatabaseConfig::new(database.service_url(), database.password().to_owned());
    let queue = PostgresQueue::new(
        Store::connect(Service::Dispatcher, &config).unwrap(),
        [settings],
    )
    .unwrap();
    queue.ensure().await.unwrap();
    queue
}

/// Pushes until the token is cancelled.
fn push(queue: &PostgresQueue, number: u128) -> (CancellationToken, JoinHandle<()>) {
    let stop = CancellationToken::new();
    let pusher =
        Pusher::new(queue.clone(), None, Uuid::from_u128(number)).timeout(Duration::from_secs(1));
    (stop.clone(), tokio::spawn(pusher.run(stop)))
}

fn task(name: &str, url: &str) -> NewEntry {
    NewEntry {
        queue: QUEUE.into(),
        name: name.to_owned(),
        tenant: "acme".parse().unwrap(),
        url: url.to_owned(),
        body: format!("body of {name}").into_bytes().into(),
        not_before: None,
    }
}

#[tokio::test]
async fn task_arrives_once_with_its_name_and_body() {
    let (world, receiver) = (World::start(|_| {}).await, Receiver::start().await);
    let _pusher = push(&world.queue, 1);
    let created = world
        .queue
        .create(&[task("d_a", &receiver.url)])
        .await
        .unwrap();
    assert_eq!(created, [Created::New]);
    until_true("the task to be taken", async || {
        world.count("state = 3").await == 1
    })
    .await;
    let pushes = receiver.pushes();
    assert_eq!(pushes.len(), 1);
    assert_eq!(
        (pushes[0].queue.as_str(), pushes[0].name.as_str()),
        (QUEUE, "d_a")
    );
    assert_eq!(
        (pushes[0].retry_count.as_str(), &pushes[0].body[..]),
        ("0", &b"body of d_a"[..])
    );
    assert_eq!(
        world.count("octet_length(body) > 0").await,
        0,
        "only the name is kept"
    );
}

#[tokio::test]
async fn f16_inv_4_creating_twice_reaches_the_target_once() {
    let (world, receiver) = (World::start(|_| {}).await, Receiver::start().await);
    let tasks: Vec<NewEntry> = (0..50)
        .map(|n| task(&format!("d_{n}"), &receiver.url))
        .collect();
    let doubled: Vec<NewEntry> = tasks.iter().chain(&tasks).cloned().collect();
    let other = world.other(|_| {}).await;
    let (here, there) = tokio::join!(world.queue.create(&doubled), other.create(&tasks));
    let statuses = [here.unwrap(), there.unwrap()].concat();
    assert_eq!(
        statuses
            .iter()
            .filter(|created| **created == Created::New)
            .count(),
        50
    );
    let _pusher = push(&world.queue, 1);
    until_true("all to be taken", async || {
        world.count("state = 3").await == 50
    })
    .await;
    // The name is still known after the end of the task.
    let again = world.queue.create(&tasks).await.unwrap();
    assert!(
        again
            .iter()
            .all(|created| *created == Created::AlreadyExists)
    );
    let last = task("d_last", &receiver.url);
    world.queue.create(&[last]).await.unwrap();
    until_true("the last to be taken", async || {
        world.count("state = 3").await == 51
    })
    .await;
    let names: BTreeSet<String> = receiver
        .pushes()
        .into_iter()
        .map(|push| push.name)
        .collect();
    assert_eq!((receiver.pushes().len(), names.len()), (51, 51));
}

#[tokio::test]
async fn names_are_deleted_an_hour_after_their_end() {
    let (world, receiver) = (World::start(|_| {}).await, Receiver::start().await);
    let (stop, pusher) = push(&world.queue, 1);
    world
        .queue
        .create(&[task("d_old", &receiver.url), task("d_young", &receiver.url)])
        .await
        .unwrap();
    until_true("both to be taken", async || {
        world.count("state = 3").await == 2
    })
    .await;
    stop.cancel();
    pusher.await.unwrap();
    world
        .change(
            "UPDATE dispatcher.queue_entries SET ended_at = ended_at - interval '61 minutes' WHERE name = 'd_old';
             UPDATE dispatcher.queue_entries SET ended_at = ended_at - interval '59 minutes' WHERE name = 'd_young';
             INSERT INTO dispatcher.queue_entries
             SELECT (jsonb_populate_record(old, jsonb_build_object('name', 'd_old' || n))).*
             FROM dispatcher.queue_entries old, generate_series(1, 12000) n WHERE old.name = 'd_old'",
        )
        .await;
    // Every pusher sweeps first.
    let begun = std::time::Instant::now();
    let _pusher = push(&world.queue, 2);
    until_true("the old names to be deleted", async || {
        world.count("name LIKE 'd_old%'").await == 0
    })
    .await;
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "one sweep deletes all of them"
    );
    assert_eq!(world.count("name = 'd_young'").await, 1);
}

#[tokio::test]
async fn task_is_not_pushed_before_its_time() {
    let (world, receiver) = (World::start(|_| {}).await, Receiver::start().await);
    let _pusher = push(&world.queue, 1);
    let in_2096 = Timestamp::from_unix_seconds(4_000_000_000);
    let scheduled = NewEntry {
        not_before: Some(in_2096),
        ..task("d_later", &receiver.url)
    };
    world
        .queue
        .create(&[scheduled, task("d_now", &receiver.url)])
        .await
        .unwrap();
    until_true("the other to be taken", async || {
        world.count("name = 'd_now' AND state = 3").await == 1
    })
    .await;
    assert_eq!(
        world
            .count("name = 'd_later' AND state = 2 AND tries = 0")
            .await,
        1
    );
    world
        .change(
            "UPDATE dispatcher.queue_entries SET due_at = clock_timestamp(); NOTIFY servo_queue",
        )
        .await;
    until_true("the other to be due", async || {
        world.count("state = 3").await == 2
    })
    .await;
}

#[tokio::test]
async fn push_is_retried_until_the_task_fails() {
    let world = World::start(|queue| queue.retry.max_attempts = 4).await;
    let receiver = Receiver::start().await;
    receiver.answer("d_flaky", &[503, 429, 500]);
    receiver.answer("d_broken", &[503, 404, 500, 503]);
    let _pusher = push(&world.queue, 1);
    let unreachable = task("d_unreachable", "http://127.0.0.1:1/push");
    let tasks = [
        task("d_flaky", &receiver.url),
        task("d_broken", &receiver.url),
        unreachable,
    ];
    world.queue.create(&tasks).await.unwrap();
    until_true("two to have failed", async || {
        world.count("state = 4").await == 2
    })
    .await;
    until_true("one to be taken", async || {
        world.count("state = 3").await == 1
    })
    .await;
    let retries = |name: &str| {
        let mine = receiver
            .pushes()
            .into_iter()
            .filter(|push| push.name == name);
        mine.map(|push| push.retry_count).collect::<Vec<_>>()
    };
    assert_eq!(retries("d_flaky"), ["0", "1", "2", "3"]);
    assert_eq!(retries("d_broken"), ["0", "1", "2", "3"]);
    assert_eq!(
        world
            .count("name = 'd_broken' AND fault = 'status 503'")
            .await,
        1
    );
    assert_eq!(
        world
            .count("name = 'd_unreachable' AND tries = 4 AND fault <> ''")
            .await,
        1
    );
}

#[tokio::test]
async fn queue_keeps_its_rate() {
    // One push immediately, and the next one hours later.
    let world = World::start(|queue| queue.max_per_second = 0.0001).await;
    let receiver = Receiver::start().await;
    let tasks: Vec<NewEntry> = (0..5)
        .map(|n| task(&format!("d_{n}"), &receiver.url))
        .collect();
    world.queue.create(&tasks).await.unwrap();
    let other = world.other(|queue| queue.max_per_second = 0.0001).await;
    let _pushers = (push(&world.queue, 1), push(&other, 2));
    until_true("one to be taken", async || {
        world.count("state = 3").await == 1
    })
    .await;
    // A claim takes as many tasks as the rate allows, so the others were held back by the rate.
    assert_eq!(world.count("state = 2 AND tries = 0").await, 4);
    assert_eq!(receiver.pushes().len(), 1);
}

#[tokio::test]
async fn queue_limits_concurrent_pushes() {
    let world = World::start(|queue| queue.max_concurrent = 2).await;
    let receiver = Receiver::closed().await;
    let tasks: Vec<NewEntry> = (0..7)
        .map(|n| task(&format!("d_{n}"), &receiver.url))
        .collect();
    world.queue.create(&tasks).await.unwrap();
    let other = world.other(|queue| queue.max_concurrent = 2).await;
    let _pushers = (push(&world.queue, 1), push(&other, 2));
    until_true("two to be in flight", async || receiver.pushes().len() == 2).await;
    assert_eq!(world.count("tries = 0").await, 5);
    receiver.open();
    until_true("all to be taken", async || {
        world.count("state = 3").await == 7
    })
    .await;
    assert_eq!(receiver.max_concurrent().0, 2);
}

#[tokio::test]
async fn paused_queue_accepts_tasks_and_does_not_push() {
    let (world, receiver) = (World::start(|_| {}).await, Receiver::start().await);
    world.queue.pause(QUEUE, true).await.unwrap();
    let _pusher = push(&world.queue, 1);
    assert_eq!(
        world
            .queue
            .create(&[task("d_a", &receiver.url)])
            .await
            .unwrap(),
        [Created::New]
    );
    assert_eq!(
        world
            .queue
            .delete(QUEUE, &["d_a".to_owned()])
            .await
            .unwrap(),
        1
    );
    world
        .queue
        .create(&[task("d_b", &receiver.url)])
        .await
        .unwrap();
    // Resumed by another process.
    world.other(|_| {}).await.pause(QUEUE, false).await.unwrap();
    until_true("the queue to be resumed", async || {
        world.count("name = 'd_b' AND state = 3").await == 1
    })
    .await;
    let names: Vec<String> = receiver
        .pushes()
        .into_iter()
        .map(|push| push.name)
        .collect();
    assert_eq!(names, ["d_b"], "a dropped task is not pushed");
    let again = world
        .queue
        .create(&[task("d_a", &receiver.url)])
        .await
        .unwrap();
    assert_eq!(again, [Created::AlreadyExists], "and its name stays known");
}

#[tokio::test]
async fn two_pushers_never_push_the_same_task_concurrently() {
    let (world, receiver) = (World::start(|_| {}).await, Receiver::start().await);
    let other = world.other(|_| {}).await;
    let _pushers = (push(&world.queue, 1), push(&other, 2));
    for part in 0..10 {
        let tasks: Vec<NewEntry> = (0..40)
            .map(|n| task(&format!("d_{part}_{n}"), &receiver.url))
            .collect();
        world.queue.create(&tasks).await.unwrap();
    }
    until_true("all to be taken", async || {
        world.count("state = 3").await == 400
    })
    .await;
    assert_eq!(receiver.pushes().len(), 400);
    assert_eq!(receiver.max_concurrent().1, 1);
}

#[tokio::test]
async fn dead_pusher_loses_no_tasks() {
    let (world, receiver) = (World::start(|_| {}).await, Receiver::closed().await);
    let tasks: Vec<NewEntry> = (0..20)
        .map(|n| task(&format!("d_{n}"), &receiver.url))
        .collect();
    world.queue.create(&tasks).await.unwrap();
    let (_, dying) = push(&world.queue, 1);
    until_true("all to be in flight", async || {
        receiver.pushes().len() == 20
    })
    .await;
    dying.abort();
    receiver.open();
    let other = world.other(|_| {}).await;
    let _pusher = push(&other, 2);
    until_true("all to be taken", async || {
        world.count("state = 3").await == 20
    })
    .await;
    assert_eq!(
        world.count("tries = 2").await,
        20,
        "each was pushed again by the other pusher"
    );
}

#[tokio::test]
async fn stopped_pusher_finishes_pushes_in_flight() {
    let (world, receiver) = (World::start(|_| {}).await, Receiver::closed().await);
    world
        .queue
        .create(&[task("d_a", &receiver.url)])
        .await
        .unwrap();
    let (stop, pusher) = push(&world.queue, 1);
    until_true("the push to be in flight", async || {
        receiver.pushes().len() == 1
    })
    .await;
    stop.cancel();
    receiver.open();
    pusher.await.unwrap();
    assert_eq!(world.count("state = 3").await, 1);
}

#[tokio::test]
async fn invalid_task_rejects_its_whole_batch() {
    let (world, receiver) = (World::start(|_| {}).await, Receiver::start().await);
    let good = task("d_a", &receiver.url);
    let bad = NewEntry {
        url: "ftp://nowhere/".to_owned(),
        ..task("d_b", &receiver.url)
    };
    let refused = world.queue.create(&[good.clone(), bad]).await.unwrap_err();
    assert!(
        matches!(refused, QueueError::BadTask { field: "url", .. }),
        "{refused}"
    );
    let elsewhere = NewEntry {
        queue: "nope".into(),
        ..good
    };
    let refused = world.queue.create(&[elsewhere]).await.unwrap_err();
    assert!(matches!(refused, QueueError::NoSuchQueue(_)), "{refused}");
    assert_eq!(world.count("true").await, 0);
}
