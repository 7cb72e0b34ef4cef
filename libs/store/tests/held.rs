//! The holder's append: it shares its keys with `ledger.append`, and stores all of a batch or
//! nothing.

#![cfg(test)]

mod common;

use common::{admin, at, event, leases, new_id, shard, store};
use servo_local::TestDatabase;
use servo_model::{EventType, Position, Service, ShardId, Stream, Timestamp};
use servo_store::{AppendResult, HeldBatch, Lease, NewEvent, Store, StoreError, query};

const KIND: EventType = EventType::TaskFinished;
const SHARD: ShardId = ShardId::new(7).unwrap();

async fn hold(store: &Store) -> Lease {
    leases(store, "holder")
        .acquire(&[SHARD], 1)
        .await
        .unwrap()
        .pop()
        .unwrap()
}

/// Returns the database's time plus an offset.
async fn time(store: &Store, ahead_us: i64) -> Timestamp {
    let rows: Vec<(Timestamp,)> = store
        .loops()
        .all(query("SELECT clock_timestamp()"))
        .await
        .unwrap();
    rows[0].0.plus_us(ahead_us)
}

async fn append_held(store: &Store, batch: &HeldBatch<'_>) -> Result<Timestamp, StoreError> {
    let placeholders: Vec<String> = (1..=19).map(|n| format!("${n}")).collect();
    let text: &'static str = format!(
        "SELECT ledger.append_held(1::smallint, {})",
        placeholders.join(", ")
    )
    .leak();
    store
        .loops()
        .store_held(batch, batch.bind(query(text)))
        .await
}

async fn append_held_events(
    store: &Store,
    lease: &Lease,
    mark: Position,
    events: &[NewEvent],
) -> Result<(), StoreError> {
    let mut batch = HeldBatch::new(time(store, 0).await);
    for event in events {
        batch.append(lease, mark, event);
    }
    append_held(store, &batch).await.map(drop)
}

async fn stored(store: &Store) -> usize {
    store
        .reader()
        .read(Stream::Execution, SHARD, Position::START, 100)
        .await
        .unwrap()
        .len()
}

#[tokio::test]
async fn both_ways_to_append_use_the_same_hashes() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let lease = hold(&store).await;
    let odd = NewEvent {
        workspace: String::new(),
        payload: (0..=255).collect(),
        ..event(KIND, SHARD, "acme", "schlüssel:1")
    };
    append_held_events(
        &store,
        &lease,
        at(0),
        &[event(KIND, SHARD, "acme", "a"), odd.clone()],
    )
    .await
    .unwrap();
    let again = NewEvent {
        event_id: new_id(),
        ..odd.clone()
    };
    let other_body = NewEvent {
        event_id: new_id(),
        payload: Vec::new(),
        ..odd.clone()
    };
    let other_version = NewEvent {
        event_id: new_id(),
        version: 2,
        ..odd.clone()
    };
    let answers = store
        .ledger()
        .append(vec![again, other_body, other_version])
        .await
        .unwrap();
    let outcomes: Vec<AppendResult> = answers.into_iter().map(|answer| answer.result).collect();
    let conflict = AppendResult::Conflict {
        event_id: odd.event_id,
    };
    assert_eq!(
        outcomes,
        [
            AppendResult::Duplicate {
                event_id: odd.event_id
            },
            conflict,
            conflict
        ]
    );

    let other_shard = event(KIND, shard(8), "acme", "b");
    store
        .ledger()
        .append(vec![other_shard.clone()])
        .await
        .unwrap();
    let taken = NewEvent {
        event_id: new_id(),
        shard: SHARD,
        ..other_shard
    };
    let refused = append_held_events(
        &store,
        &lease,
        at(2),
        &[event(KIND, SHARD, "acme", "c"), taken],
    )
    .await;
    assert!(
        matches!(refused, Err(StoreError::KeyTaken(_))),
        "{refused:?}"
    );
    assert_eq!(
        stored(&store).await,
        2,
        "no event of a refused batch is stored"
    );
}

#[tokio::test]
async fn appends_continue_after_the_clock_was_set_back() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let lease = hold(&store).await;
    // Simulates a clock that was set back after the last event.
    let set_back = "UPDATE ledger.shards SET recorded_at = clock_timestamp() + interval '1 hour' WHERE shard = $1";
    sqlx::query(set_back)
        .bind(SHARD)
        .execute(&mut admin(&database).await)
        .await
        .unwrap();
    let last = "SELECT recorded_at FROM ledger.shards WHERE stream = 1 AND shard = $1";
    let last: Vec<(Timestamp,)> = store.loops().all(query(last).bind(SHARD)).await.unwrap();
    let last = last[0].0;
    let events = ["one", "two", "three"].map(|key| event(KIND, SHARD, "acme", key));
    for (mark, event) in (0..).map(at).zip(&events[..2]) {
        let mut batch = HeldBatch::new(last);
        batch.append(&lease, mark, event);
        append_held(&store, &batch).await.unwrap();
    }
    for time in [last.plus_us(2_000_000), time(&store, -2_000_000).await] {
        let mut batch = HeldBatch::new(time);
        batch.append(&lease, at(2), &events[2]);
        let refused = append_held(&store, &batch).await;
        assert!(
            matches!(refused, Err(StoreError::ClockOff(_))),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn invalid_batches_are_refused_with_their_reason() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let lease = hold(&store).await;
    let one = || event(KIND, SHARD, "acme", "one");

    let early = one();
    let mut batch = HeldBatch::new(time(&store, -2_000_000).await);
    batch.append(&lease, at(0), &early);
    let refused = append_held(&store, &batch).await;
    assert!(
        matches!(refused, Err(StoreError::ClockOff(_))),
        "{refused:?}"
    );

    let refused = append_held_events(&store, &lease, at(1), &[one()]).await;
    assert!(
        matches!(refused, Err(StoreError::LeaseLost(_))),
        "{refused:?}"
    );

    let mut batch = HeldBatch::new(time(&store, 0).await);
    batch.advance(&lease, at(0), at(1));
    let refused = append_held(&store, &batch).await;
    assert!(
        matches!(refused, Err(StoreError::Behind(_))),
        "a mark beyond the head: {refused:?}"
    );

    let foreign = event(EventType::QuotaChanged, SHARD, "acme", "foreign");
    let refused = append_held_events(&store, &lease, at(0), &[one(), foreign]).await;
    assert!(
        matches!(refused, Err(StoreError::Refused(_))),
        "{refused:?}"
    );

    store
        .ledger()
        .append(vec![event(KIND, SHARD, "acme", "another caller's")])
        .await
        .unwrap();
    let refused = append_held_events(&store, &lease, at(0), &[one()]).await;
    assert!(matches!(refused, Err(StoreError::Behind(_))), "{refused:?}");

    let mut batch = HeldBatch::new(time(&store, 0).await);
    batch.advance(&lease, at(0), at(1));
    append_held(&store, &batch).await.unwrap();
    append_held_events(&store, &lease, at(1), &[one()])
        .await
        .unwrap();

    let mut admin = admin(&database).await;
    sqlx::query("DELETE FROM ledger.lessees WHERE role = 'servo_scheduler_loop'")
        .execute(&mut admin)
        .await
        .unwrap();
    let refused =
        append_held_events(&store, &lease, at(2), &[event(KIND, SHARD, "acme", "two")]).await;
    assert!(
        matches!(refused, Err(StoreError::Refused(_))),
        "{refused:?}"
    );
    assert_eq!(stored(&store).await, 2);
}
