//! Verdicts of timers on a real Postgres, each lane driven by hand so that nothing depends on who is quicker.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use servo_local::TestDatabase;
use servo_model::states::TaskState;
use servo_model::{EventType, RunId, Service, Stream};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::sqlx::{self, Connection, PgConnection};
use servo_store::{Store, query};
use uuid::Uuid;

use super::manual_lane::{ManualLane, hold, leases};
use super::{attempt_id, event_id, keep_plan, plan, record_finish, run_id, states, store};
use crate::shards::{Command, RunEvent};

/// So many tasks that wait for nothing, and these times for each of their attempts.
fn loose(tasks: usize, timeouts: pb::Timeouts) -> pb::Plan {
    let mut plan = plan(&vec![&[][..]; tasks]);
    plan.assets
        .iter_mut()
        .for_each(|asset| asset.timeouts = Some(timeouts));
    plan
}

fn millis(ms: i32) -> Option<prost_types::Duration> {
    Some(prost_types::Duration {
        seconds: 0,
        nanos: ms * 1_000_000,
    })
}

/// Waits by the database's clock until everything that is due within this time is.
async fn pass(store: &Store, ms: u64) {
    let wait = query("SELECT pg_sleep($1)").bind(Duration::from_millis(ms).as_secs_f64());
    store.loops().execute(wait).await.unwrap();
}

/// Positions of a shard's events of one kind.
async fn positions(store: &Store, shard: i16, kind: EventType) -> Vec<i64> {
    let mut found = Vec::new();
    let mut after = 0;
    loop {
        let events = store
            .reader()
            .read(Stream::Execution, shard, after, 10_000)
            .await
            .unwrap();
        let Some(last) = events.last() else {
            return found;
        };
        after = last.position;
        found.extend(
            events
                .iter()
                .filter(|event| event.kind() == Some(kind))
                .map(|event| event.position),
        );
    }
}

#[tokio::test]
async fn inv_9_no_verdict_is_appended_before_what_others_appended_is_folded() {
    let database = TestDatabase::create().await.unwrap();
    let (store, id) = (store(&database, Service::Scheduler), run_id(9));
    let plan = loose(
        2,
        pb::Timeouts {
            dispatch_ack: millis(10),
            ..Default::default()
        },
    );
    keep_plan(&database, &plan).await;
    let mut holder = ManualLane::holding(&store, hold(&store, id.shard()).await).await;
    holder.claimed(&plan, id).await;
    pass(&store, 20).await;
    // Both are due, and the outcome of the first lies behind the holder's watermark, unread.
    record_finish(&database, id).await;
    let finish = positions(&store, id.shard(), EventType::TaskFinished).await;
    holder.lane.fire_timers().await;

    let verdicts = positions(&store, id.shard(), EventType::TimerFired).await;
    assert_eq!(
        verdicts,
        [finish[0] + 1],
        "of the silent one alone, and behind what was read first"
    );
    let (_, tasks) = states(&store, id).await;
    assert_eq!(
        tasks,
        [TaskState::Succeeded, TaskState::Ready].map(TaskState::code)
    );
}

#[tokio::test]
async fn f02_a_thousand_dead_attempts_are_given_up_once_however_many_sweep() {
    const DEAD: usize = 1_000;
    let database = TestDatabase::create().await.unwrap();
    let (store, id) = (store(&database, Service::Scheduler), run_id(2));
    let plan = loose(
        DEAD,
        pb::Timeouts {
            dispatch_ack: millis(10),
            ..Default::default()
        },
    );
    keep_plan(&database, &plan).await;
    // One whose lease is over, and three that each believe to be its only heir.
    let first = hold(&store, id.shard()).await;
    let mut stale = ManualLane::holding(&store, first.clone()).await;
    stale.claimed(&plan, id).await;
    leases(&store, "by hand").release(first).await.unwrap();
    let lease = hold(&store, id.shard()).await;
    let mut sweepers = vec![stale];
    for _ in 0..3 {
        sweepers.push(ManualLane::holding(&store, lease.clone()).await);
    }
    pass(&store, 20).await;
    for _ in 0..3 {
        join_all(
            sweepers
                .iter_mut()
                .map(|sweeper| sweeper.lane.fire_timers()),
        )
        .await;
    }

    assert_eq!(
        positions(&store, id.shard(), EventType::TimerFired)
            .await
            .len(),
        DEAD
    );
    let rows: Vec<(i32, i16, i64)> = store
        .loops()
        .all(query(
            "SELECT attempt, state, count(*) FROM scheduler.tasks GROUP BY 1, 2",
        ))
        .await
        .unwrap();
    assert_eq!(
        rows,
        [(1, TaskState::Ready.code(), DEAD as i64)],
        "each waits for its second attempt"
    );
}

fn started(id: RunId, ordinal: u32) -> Command {
    let attempt_id = attempt_id(id, ordinal, 1).to_string();
    Command::Event(Arc::new(RunEvent {
        tenant: "acme".to_owned(),
        run_id: id,
        event_id: event_id(),
        idempotency_key: format!("started:{attempt_id}"),
        body: Body::TaskStarted(pb::TaskStarted {
            run_id: id.to_string(),
            task: Some(pb::TaskRef {
                ordinal,
                map_index: None,
            }),
            attempt_id,
            session: "s".to_owned(),
            ..Default::default()
        }),
        trace: None,
    }))
}

/// The callback has been healthy for long, and has just heard of these attempts.
async fn beats(database: &TestDatabase, attempts: &[Uuid]) {
    let mut admin = PgConnection::connect(&database.admin_url()).await.unwrap();
    let healthy = "INSERT INTO callback.instances (address, healthy_since, good_until)
        VALUES ('https://callback:1', now() - interval '1 hour', now() + interval '1 hour')";
    sqlx::query(healthy).execute(&mut admin).await.unwrap();
    let beat = "INSERT INTO callback.heartbeats (attempt_id, tenant, beat_at)
        SELECT id, 'acme', now() + interval '1 hour' FROM unnest($1::uuid[]) AS id";
    sqlx::query(beat)
        .bind(attempts)
        .execute(&mut admin)
        .await
        .unwrap();
}

#[tokio::test]
async fn f10_one_who_is_lost_is_found_behind_twenty_thousand_who_only_seem_so() {
    const ALIVE: u32 = 20_000;
    let database = TestDatabase::create().await.unwrap();
    let (store, id) = (store(&database, Service::Scheduler), run_id(10));
    let plan = loose(
        ALIVE as usize + 1,
        pb::Timeouts {
            heartbeat: millis(100),
            ..Default::default()
        },
    );
    keep_plan(&database, &plan).await;
    let mut holder = ManualLane::holding(&store, hold(&store, id.shard()).await).await;
    holder.claimed(&plan, id).await;
    holder
        .fold((0..=ALIVE).map(|ordinal| started(id, ordinal)).collect())
        .await;
    let uuid = |ordinal| Uuid::from_bytes(*attempt_id(id, ordinal, 1).as_bytes());
    beats(&database, &(0..ALIVE).map(uuid).collect::<Vec<_>>()).await;
    pass(&store, 200).await;
    // All are due to be looked at, and the lost one is the last of them. A pass that judged the same ones again and
    // again would never come to it.
    for _ in 0..=ALIVE / 1_000 {
        holder.lane.fire_timers().await;
    }

    assert_eq!(
        positions(&store, id.shard(), EventType::TimerFired)
            .await
            .len(),
        1
    );
    let rows: Vec<(i32, i16)> = store
        .loops()
        .all(
            query("SELECT ordinal, state FROM scheduler.tasks WHERE state <> $1")
                .bind(TaskState::Running.code()),
        )
        .await
        .unwrap();
    assert_eq!(rows, [(ALIVE.cast_signed(), TaskState::RetryWait.code())]);
}
