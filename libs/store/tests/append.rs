//! Results and refusals of `ledger.append`, and the isolation of callers that share a commit.

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod common;

use std::time::Duration;

use common::{admin, at, connect, event, new_id, shard, shards, store, tenant};
use futures::future::join_all;
use servo_local::TestDatabase;
use servo_model::{EventType, Service, Stream, TenantScope};
use servo_store::{AppendError, AppendResult, EVENT_PAYLOAD_BYTES_MAX, NewEvent, StoreError};
use sqlx::PgConnection;

const KIND: EventType = EventType::TaskFinished;

#[tokio::test]
async fn positions_are_dense_per_shard_and_results_are_in_order() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let shards = shards([5, 3, 5, 63, 3, 5]);
    let events: Vec<NewEvent> = shards
        .iter()
        .enumerate()
        .map(|(n, shard)| event(KIND, *shard, "acme", &format!("k{n}")))
        .collect();
    let answers = store.ledger().append(events.clone()).await.unwrap();
    assert_eq!(
        answers.iter().map(|a| a.position).collect::<Vec<_>>(),
        [1, 1, 2, 1, 2, 3].map(at)
    );
    assert!(
        answers
            .iter()
            .all(|a| a.result == AppendResult::New && a.stream == Stream::Execution)
    );
    let read = store
        .reader()
        .read(Stream::Execution, shard(5), at(0), 10)
        .await
        .unwrap();
    let expected: Vec<_> = [0, 2, 5].map(|n: usize| events[n].event_id).to_vec();
    assert_eq!(
        read.iter().map(|e| e.event_id).collect::<Vec<_>>(),
        expected
    );
    assert!(
        read.iter()
            .all(|e| e.source == "scheduler" && e.kind() == Some(KIND))
    );
}

#[tokio::test]
async fn known_key_is_a_duplicate_or_a_conflict() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let first = event(KIND, shard(1), "acme", "key");
    store.ledger().append(vec![first.clone()]).await.unwrap();
    let again = NewEvent {
        event_id: new_id(),
        ..first.clone()
    };
    let other_shard = NewEvent {
        event_id: new_id(),
        shard: shard(9),
        ..first.clone()
    };
    let other_body = NewEvent {
        event_id: new_id(),
        payload: b"other".to_vec(),
        ..first.clone()
    };
    let other_workspace = NewEvent {
        event_id: new_id(),
        workspace: "dev".to_owned(),
        ..first.clone()
    };
    let other_tenant = NewEvent {
        event_id: new_id(),
        tenant: "globex".parse().unwrap(),
        ..first.clone()
    };
    let batch = vec![
        first.clone(),
        again,
        other_shard,
        other_body,
        other_workspace,
        other_tenant,
    ];
    let answers = store.ledger().append(batch).await.unwrap();
    let kept = first.event_id;
    assert_eq!(
        answers[0].result,
        AppendResult::New,
        "the same id is the same event, repeated"
    );
    assert_eq!(
        answers[1].result,
        AppendResult::Duplicate { event_id: kept }
    );
    assert_eq!(
        answers[2].result,
        AppendResult::Duplicate { event_id: kept }
    );
    assert_eq!(answers[3].result, AppendResult::Conflict { event_id: kept });
    assert!(
        answers[..4]
            .iter()
            .all(|a| (a.shard, a.position) == (shard(1), at(1)))
    );
    assert_eq!(answers[4].result, AppendResult::New);
    assert_eq!(answers[5].result, AppendResult::New);
    assert_eq!((answers[4].position, answers[5].position), (at(2), at(3)));
}

#[tokio::test]
async fn key_may_occur_twice_in_one_batch() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let first = event(KIND, shard(1), "acme", "key");
    let duplicate = NewEvent {
        event_id: new_id(),
        shard: shard(2),
        ..first.clone()
    };
    let conflicting = NewEvent {
        event_id: new_id(),
        payload: b"other".to_vec(),
        ..first.clone()
    };
    let last = event(KIND, shard(1), "acme", "another key");
    let answers = store
        .ledger()
        .append(vec![first.clone(), duplicate, conflicting, last])
        .await
        .unwrap();
    assert_eq!(answers[0].result, AppendResult::New);
    assert_eq!(
        answers[1].result,
        AppendResult::Duplicate {
            event_id: first.event_id
        }
    );
    assert_eq!(
        answers[2].result,
        AppendResult::Conflict {
            event_id: first.event_id
        }
    );
    assert_eq!((answers[1].shard, answers[1].position), (shard(1), at(1)));
    assert_eq!(answers[3].position, at(2));
    assert_eq!(
        store
            .reader()
            .read(Stream::Execution, shard(2), at(0), 10)
            .await
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn bad_events_are_refused_before_they_join_a_flush() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let good = event(KIND, shard(0), "acme", "key");
    let cases = [
        (
            NewEvent {
                kind: EventType::QuotaChanged,
                shard: shard(4),
                ..good.clone()
            },
            "shard is 4, but stream quota has 4",
        ),
        (
            NewEvent {
                version: 0,
                ..good.clone()
            },
            "version is 0",
        ),
        (
            NewEvent {
                tenant: TenantScope::All,
                ..good.clone()
            },
            "tenant is `-`; only events of dispatch and quota",
        ),
        (
            NewEvent {
                workspace: "a\0b".to_owned(),
                ..good.clone()
            },
            "workspace contains a NUL",
        ),
        (
            NewEvent {
                idempotency_key: String::new(),
                ..good.clone()
            },
            "idempotency_key has 0 bytes",
        ),
        (
            NewEvent {
                payload: vec![0; EVENT_PAYLOAD_BYTES_MAX + 1],
                ..good.clone()
            },
            "payload has 65537 bytes",
        ),
        (
            NewEvent {
                kind: EventType::QuotaChanged,
                ..good.clone()
            },
            "may not be appended by service scheduler",
        ),
    ];
    for (bad, expected) in cases {
        let refused = store
            .ledger()
            .append(vec![good.clone(), bad])
            .await
            .unwrap_err();
        assert!(matches!(refused, AppendError::BadEvent(_)), "{refused}");
        let sentence = refused.to_string();
        assert!(
            sentence.contains(expected) && sentence.contains("event 1"),
            "{sentence}"
        );
    }
    let largest = NewEvent {
        payload: vec![7; EVENT_PAYLOAD_BYTES_MAX],
        ..good
    };
    assert_eq!(
        store.ledger().append(vec![largest]).await.unwrap()[0].position,
        at(1)
    );
}

/// Calls the function directly, as a faulty service would.
#[tokio::test]
async fn database_refuses_bad_events() {
    let database = TestDatabase::create().await.unwrap();
    let refusal = async |role: &str, event: NewEvent, raw: RawColumns| {
        let mut connection = connect(&database.url_of(role)).await;
        raw_append(&mut connection, &event, raw)
            .await
            .unwrap_err()
            .to_string()
    };
    let good = event(KIND, shard(0), "acme", "key");
    let message = refusal("servo_planner_loop", good.clone(), GOOD).await;
    assert!(
        message.contains("role servo_planner_loop may not append events of type 26"),
        "{message}"
    );
    let message = refusal(
        "servo_scheduler_loop",
        good.clone(),
        RawColumns { stream: 2, ..GOOD },
    )
    .await;
    assert!(
        message.contains("events of type 26 belong to stream 1, not to stream 2"),
        "{message}"
    );
    let message = refusal(
        "servo_scheduler_loop",
        good.clone(),
        RawColumns { shard: 64, ..GOOD },
    )
    .await;
    assert!(
        message.contains("a shard that does not exist: stream 1, shard 64"),
        "{message}"
    );
    let message = refusal(
        "servo_scheduler_loop",
        NewEvent {
            payload: vec![0; 65_537],
            ..good.clone()
        },
        GOOD,
    )
    .await;
    assert!(message.contains("payload_bytes_max"), "{message}");
    let message = refusal(
        "servo_scheduler_loop",
        good.clone(),
        RawColumns { tenant: "", ..GOOD },
    )
    .await;
    assert!(message.contains("tenant_is_named"), "{message}");
    let message = refusal("servo_scheduler", good.clone(), GOOD).await;
    assert!(
        message.contains("role servo_scheduler may append for tenant (none) only"),
        "{message}"
    );
    let message = refusal("servo_gateway_loop", good, GOOD).await;
    assert!(
        message.contains("permission denied for function append"),
        "{message}"
    );
}

/// Columns with values that the types of an event exclude.
struct RawColumns {
    stream: i16,
    shard: i16,
    tenant: &'static str,
}

const GOOD: RawColumns = RawColumns {
    stream: 1,
    shard: 0,
    tenant: "acme",
};

async fn raw_append(
    connection: &mut PgConnection,
    event: &NewEvent,
    raw: RawColumns,
) -> sqlx::Result<i64> {
    sqlx::query_scalar(
        "SELECT position FROM ledger.append(ARRAY[$1]::smallint[], ARRAY[$2]::smallint[], ARRAY[$3]::uuid[],
             ARRAY[$4]::smallint[], ARRAY[$5]::smallint[], ARRAY[$6], ARRAY[$7], ARRAY[$8], NULL, NULL, ARRAY[$9])",
    )
    .bind(raw.stream)
    .bind(raw.shard)
    .bind(event.event_id)
    .bind(event.kind.code())
    .bind(event.version)
    .bind(raw.tenant)
    .bind(&event.workspace)
    .bind(&event.idempotency_key)
    .bind(&event.payload)
    .fetch_one(connection)
    .await
}

#[tokio::test]
async fn handler_appends_for_its_own_tenant_only_and_with_its_rows() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Quota);
    let change = |tenant: &str| event(EventType::QuotaChanged, shard(0), tenant, "quota:1");
    let mut tx = store.requests().begin(&tenant("acme")).await.unwrap();
    let insert = "INSERT INTO quota.quotas VALUES ($1, 1, '', clock_timestamp())";
    tx.execute(servo_store::query(insert).bind("acme"))
        .await
        .unwrap();
    tx.append(&[change("acme")]).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = store.requests().begin(&tenant("acme")).await.unwrap();
    tx.execute(servo_store::query("UPDATE quota.quotas SET version = 2"))
        .await
        .unwrap();
    let refused = tx.append(&[change("globex")]).await.unwrap_err();
    assert!(
        matches!(&refused, AppendError::Store(StoreError::Refused(why)) if why.contains("tenant acme only"))
    );
    assert!(matches!(
        tx.commit().await.unwrap_err(),
        StoreError::Aborted
    ));
    let mut tx = store.requests().begin(&tenant("acme")).await.unwrap();
    let (version,): (i64,) = tx
        .one(servo_store::query("SELECT version FROM quota.quotas"))
        .await
        .unwrap();
    assert_eq!(version, 1, "rows and events are one transaction");
    assert_eq!(
        store
            .reader()
            .read(Stream::Quota, shard(0), at(0), 10)
            .await
            .unwrap()
            .len(),
        1
    );
}

/// The database refuses one caller's event type; the forty-nine others of the same flush succeed.
#[tokio::test]
async fn one_bad_caller_among_fifty_fails_alone() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    sqlx::query("DELETE FROM ledger.writers WHERE role = 'servo_scheduler_loop' AND type = $1")
        .bind(EventType::TaskStarted.code())
        .execute(&mut admin(&database).await)
        .await
        .unwrap();
    let callers = (0..50).map(|n: u32| {
        let kind = if n == 17 {
            EventType::TaskStarted
        } else {
            KIND
        };
        store.ledger().append(vec![event(
            kind,
            shard(n % 8),
            "acme",
            &format!("caller {n}"),
        )])
    });
    let answers = join_all(callers).await;
    for (n, answer) in answers.iter().enumerate() {
        match answer {
            Ok(appended) => assert!(n != 17 && appended[0].result == AppendResult::New),
            Err(error) => assert!(
                n == 17 && error.to_string().contains("may not append"),
                "{n}: {error}"
            ),
        }
    }
    assert!(
        store.ledger().counts().commits > 10,
        "the bad event shared its flush with others"
    );
}

#[tokio::test]
async fn cancelled_callers_do_not_affect_others() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let mut cancelled = Vec::new();
    for n in 0..200 {
        let ledger = store.ledger().clone();
        let own = vec![event(KIND, shard(0), "acme", &format!("cancelled {n}"))];
        cancelled.push(tokio::spawn(async move { ledger.append(own).await }));
        if n % 2 == 0 {
            tokio::task::yield_now().await;
        }
        cancelled[n].abort();
    }
    let answers = store
        .ledger()
        .append(vec![event(KIND, shard(0), "acme", "completed")])
        .await
        .unwrap();
    assert_eq!(answers[0].result, AppendResult::New);
    let read = store
        .reader()
        .read(Stream::Execution, shard(0), at(0), 1_000)
        .await
        .unwrap();
    assert_eq!(read.last().unwrap().idempotency_key, "completed");
}

/// Every caller's events are one commit: a reader never sees only some of them.
#[tokio::test]
async fn callers_share_commits() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let callers = (0..400).map(|n: u32| {
        let batch = (0..3)
            .map(|k| event(KIND, shard((n + k) % 64), "acme", &format!("{n}/{k}")))
            .collect();
        store.ledger().append(batch)
    });
    for answer in join_all(callers).await {
        assert!(
            answer
                .unwrap()
                .iter()
                .all(|appended| appended.result == AppendResult::New)
        );
    }
    let counts = store.ledger().counts();
    assert_eq!(counts.events, 1_200);
    assert!(
        counts.commits < 40,
        "{} commits for 400 callers",
        counts.commits
    );
}

#[tokio::test]
async fn time_never_decreases_within_a_shard() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    // Simulates a clock that was set back after the last event.
    sqlx::query(
        "UPDATE ledger.shards SET recorded_at = clock_timestamp() + interval '1 hour' WHERE shard = 0",
    )
    .execute(&mut admin(&database).await)
    .await
    .unwrap();
    let batch = (0..4)
        .map(|n| event(KIND, shard(n % 2), "acme", &format!("k{n}")))
        .collect();
    let answers = store.ledger().append(batch).await.unwrap();
    assert!(answers[0].recorded_at > answers[1].recorded_at.plus(Duration::from_secs(3_000)));
    let more = store
        .ledger()
        .append(vec![event(KIND, shard(0), "acme", "later")])
        .await
        .unwrap();
    assert!(more[0].recorded_at >= answers[2].recorded_at);
}

#[tokio::test]
async fn append_to_a_closed_store_fails() {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    store
        .ledger()
        .append(vec![event(KIND, shard(0), "acme", "before")])
        .await
        .unwrap();
    store.close().await;
    assert!(
        store
            .ledger()
            .append(vec![event(KIND, shard(0), "acme", "after")])
            .await
            .is_err()
    );
}
