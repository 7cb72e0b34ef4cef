//! Days are partitions: created in advance, dropped only when archived and folded; keys expire
//! after seven days.

#![cfg(test)]

mod common;

use common::{admin, at, connect, event, leases, shard, store};
use futures::future::join_all;
use servo_local::TestDatabase;
use servo_model::{EventType, Service, Stream};
use servo_store::{AppendResult, NewEvent, ReadError, Store};
use sqlx::PgConnection;

const KIND: EventType = EventType::TaskFinished;

async fn retention(database: &TestDatabase) -> PgConnection {
    connect(&database.url_of("servo_retention")).await
}

async fn run(connection: &mut PgConnection, statement: &'static str) -> Result<(), String> {
    let outcome = sqlx::raw_sql(statement).execute(connection).await;
    outcome.map(|_| ()).map_err(|error| error.to_string())
}

/// Moves today's events into a partition of 1 January 2026, as if they were old.
const AGE: &str = "
    CREATE TABLE ledger.events_20260101 PARTITION OF ledger.events FOR VALUES FROM ('2026-01-01') TO ('2026-01-02');
    ALTER TABLE ledger.events_20260101 OWNER TO servo_owner;
    UPDATE ledger.events SET recorded_at = '2026-01-01T12:00:00Z'";

async fn append(store: &Store, count: usize) {
    let events = (0..count)
        .map(|n| event(KIND, shard(3), "acme", &format!("k{n}")))
        .collect();
    store.ledger().append(events).await.unwrap();
}

#[tokio::test]
async fn day_is_dropped_only_when_past_archived_and_folded() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    append(&store, 5).await;
    run(&mut admin(&database).await, AGE).await.unwrap();
    let mut retention = retention(&database).await;
    let drop_day = "SELECT ledger.drop_partition('2026-01-01')";
    let refused = run(&mut retention, "SELECT ledger.drop_partition('2020-01-01')")
        .await
        .unwrap_err();
    assert!(
        refused.contains("there is no partition for 2020-01-01"),
        "{refused}"
    );
    let refused = run(&mut retention, "SELECT ledger.drop_partition(current_date)")
        .await
        .unwrap_err();
    assert!(refused.contains("may still grow"), "{refused}");
    let refused = run(&mut retention, drop_day).await.unwrap_err();
    assert!(refused.contains("is not archived"), "{refused}");
    run(
        &mut retention,
        "SELECT ledger.note_archived('2026-01-01', 4)",
    )
    .await
    .unwrap();
    let refused = run(&mut retention, drop_day).await.unwrap_err();
    assert!(
        refused.contains("holds 4 events, its partition 5"),
        "{refused}"
    );
    run(
        &mut retention,
        "SELECT ledger.note_archived('2026-01-01', 5)",
    )
    .await
    .unwrap();
    let refused = run(&mut retention, drop_day).await.unwrap_err();
    assert!(
        refused.contains("5 events that are not folded yet"),
        "{refused}"
    );
    let lease = leases(&store, "anna")
        .acquire(&[shard(3)], 1)
        .await
        .unwrap()
        .remove(0);
    store
        .loops()
        .fence(&lease, at(0), at(5))
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
    run(&mut retention, drop_day).await.unwrap();
    store
        .ledger()
        .append(vec![event(KIND, shard(3), "acme", "after")])
        .await
        .unwrap();
    assert_eq!(
        store
            .reader()
            .read(Stream::Execution, shard(3), at(5), 10)
            .await
            .unwrap()
            .len(),
        1
    );
    let gap = store
        .reader()
        .read(Stream::Execution, shard(3), at(0), 10)
        .await
        .unwrap_err();
    let ReadError::Gap { after, found, .. } = gap else {
        panic!("{gap}");
    };
    assert_eq!((after, found), (at(0), at(6)));
}

#[tokio::test]
async fn only_retention_drops_partitions_and_it_can_do_nothing_else() {
    let database = TestDatabase::create().await.unwrap();
    for statement in [
        "DROP TABLE ledger.events_default",
        "DELETE FROM ledger.events",
        "TRUNCATE ledger.events",
    ] {
        let refused = run(&mut retention(&database).await, statement)
            .await
            .unwrap_err();
        assert!(
            refused.contains("must be owner") || refused.contains("permission denied"),
            "{refused}"
        );
    }
    let mut scheduler = connect(&database.url_of("servo_scheduler_loop")).await;
    let refused = run(&mut scheduler, "SELECT ledger.drop_partition('2026-01-01')")
        .await
        .unwrap_err();
    assert!(refused.contains("permission denied"), "{refused}");
    run(&mut scheduler, "SELECT ledger.make_partitions(20)")
        .await
        .unwrap();
}

#[tokio::test]
async fn partitions_are_created_in_advance_and_once() {
    let database = TestDatabase::create().await.unwrap();
    let mut retention = retention(&database).await;
    let mut make = async || -> i32 {
        sqlx::query_scalar("SELECT ledger.make_partitions(16)")
            .fetch_one(&mut retention)
            .await
            .unwrap()
    };
    // The migration created today and fourteen days ahead; the template may be from yesterday.
    assert!(make().await >= 2);
    assert_eq!(make().await, 0);
}

/// Every scheduler may create partitions, concurrently and under load.
#[tokio::test]
async fn partitions_are_created_concurrently_and_during_appends() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let appends = (0..50).map(|n| {
        store
            .ledger()
            .append(vec![event(KIND, shard(n % 64), "acme", &format!("k{n}"))])
    });
    let makers = (0..4).map(|_| async {
        let mut connection = connect(&database.url_of("servo_scheduler_loop")).await;
        run(&mut connection, "SELECT ledger.make_partitions(40)")
            .await
            .unwrap();
    });
    let (appended, _) = tokio::join!(join_all(appends), join_all(makers));
    assert!(appended.into_iter().all(|answer| answer.is_ok()));
}

#[tokio::test]
async fn append_succeeds_without_a_daily_partition() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    run(
        &mut admin(&database).await,
        "DO $$ DECLARE t text; BEGIN
             FOR t IN SELECT inhrelid::regclass::text FROM pg_inherits
                 WHERE inhparent = 'ledger.events'::regclass AND inhrelid <> 'ledger.events_default'::regclass
             LOOP EXECUTE 'DROP TABLE ' || t; END LOOP;
         END $$",
    )
    .await
    .unwrap();
    append(&store, 3).await;
    run(
        &mut retention(&database).await,
        "SELECT ledger.make_partitions(3)",
    )
    .await
    .unwrap();
    store
        .ledger()
        .append(vec![event(KIND, shard(3), "acme", "late")])
        .await
        .unwrap();
    assert_eq!(
        store
            .reader()
            .read(Stream::Execution, shard(3), at(0), 10)
            .await
            .unwrap()
            .len(),
        4
    );
    let in_default: i64 = sqlx::query_scalar("SELECT count(*) FROM ledger.events_default")
        .fetch_one(&mut admin(&database).await)
        .await
        .unwrap();
    assert_eq!(
        in_default, 4,
        "a day with events in the default partition stays there"
    );
}

#[tokio::test]
async fn keys_expire_in_batches_after_seven_days_and_can_be_reused() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    append(&store, 5).await;
    let aged =
        "UPDATE ledger.keys SET recorded_at = recorded_at - interval '7 days' WHERE position <= 3";
    run(&mut admin(&database).await, aged).await.unwrap();
    let mut retention = retention(&database).await;
    let mut expire = async || -> i64 {
        sqlx::query_scalar("SELECT ledger.expire_keys(2)")
            .fetch_one(&mut retention)
            .await
            .unwrap()
    };
    assert_eq!((expire().await, expire().await, expire().await), (2, 1, 0));
    let again: Vec<NewEvent> = (0..5)
        .map(|n| event(KIND, shard(3), "acme", &format!("k{n}")))
        .collect();
    let answers = store.ledger().append(again).await.unwrap();
    let new: Vec<bool> = answers
        .iter()
        .map(|answer| answer.result == AppendResult::New)
        .collect();
    assert_eq!(new, [true, true, true, false, false]);
}
