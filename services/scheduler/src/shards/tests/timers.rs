//! Timers on a real Postgres, with manual lanes so that tests do not depend on timing.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use servo_local::TestDatabase;
use servo_model::states::TaskState;
use servo_model::{EventType, Position, RunId, Service, ShardId, Stream};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::sqlx::{self, Connection, PgConnection};
use servo_store::{Store, query};
use uuid::Uuid;

use super::manual_lane::{ManualLane, hold, leases};
use super::{acme, attempt_id, event_id, keep_plan, plan, record_finish, run_id, states, store};
use crate::shards::{Command, RunEvent};

/// A plan of independent tasks with these timeouts.
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

/// Waits this long by the database's clock.
async fn wait_for(store: &Store, ms: u64) {
    let wait = query("SELECT pg_sleep($1)").bind(Duration::from_millis(ms).as_secs_f64());
    store.loops().execute(wait).await.unwrap();
}

/// The positions of a shard's events of one kind.
async fn positions(store: &Store, shard: ShardId, kind: EventType) -> Vec<Position> {
    let mut found = Vec::new();
    let mut after = Position::START;
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
async fn inv_9_no_timer_fires_before_appended_events_are_folded() {
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
    wait_for(&store, 20).await;
    // Both timers are due, and the outcome of the first attempt is appended but not folded.
    record_finish(&database, id).await;
    let finish = positions(&store, id.shard(), EventType::TaskFinished).await;
    holder.lane.fire_timers().await;

    let timers_fired = positions(&store, id.shard(), EventType::TimerFired).await;
    assert_eq!(
        timers_fired,
        [finish[0].next()],
        "only for the silent attempt, and after the folded outcome"
    );
    let (_, tasks) = states(&store, id).await;
    assert_eq!(
        tasks,
        [TaskState::Succeeded, TaskState::Ready].map(TaskState::code)
    );
}

#[tokio::test]
async fn f02_a_thousand_dead_attempts_expire_once_with_several_holders() {
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
    // One lane with an old lease, and three with the same new lease.
    let first = hold(&store, id.shard()).await;
    let mut stale = ManualLane::holding(&store, first.clone()).await;
    stale.claimed(&plan, id).await;
    leases(&store, "by hand").release(first).await.unwrap();
    let lease = hold(&store, id.shard()).await;
    let mut sweepers = vec![stale];
    for _ in 0..3 {
        sweepers.push(ManualLane::holding(&store, lease.clone()).await);
    }
    wait_for(&store, 20).await;
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
        "each task is ready for its second attempt"
    );
}

fn started(id: RunId, ordinal: u32) -> Command {
    let attempt_id = attempt_id(id, ordinal, 1).to_string();
    Command::Event(Arc::new(RunEvent {
        tenant: acme(),
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

/// Records a healthy callback instance and heartbeats of these attempts.
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
async fn f10_a_lost_attempt_is_found_among_twenty_thousand_live_ones() {
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
    wait_for(&store, 200).await;
    // All timers are due and the lost attempt is the last one. A pass that checked the same timers
    // again and again would never reach it.
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
