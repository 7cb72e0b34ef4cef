//! Tasks flow from the scheduler to workers and back, through all kinds of failures.

use std::sync::Arc;

use servo_client::api;
use servo_client::worker::{Attempt, AttemptOutcome, Handler};
use tokio::sync::Semaphore;

use crate::world::*;

struct Noop;

impl Handler for Noop {
    async fn run(&self, _: Attempt) -> AttemptOutcome {
        AttemptOutcome::succeeded()
    }
}

/// Counts running attempts and lets them end one by one.
#[derive(Clone)]
struct Held {
    running: Arc<Semaphore>,
    release: Arc<Semaphore>,
}

impl Held {
    fn new() -> Held {
        Held {
            running: Arc::new(Semaphore::new(0)),
            release: Arc::new(Semaphore::new(0)),
        }
    }
}

impl Handler for Held {
    async fn run(&self, attempt: Attempt) -> AttemptOutcome {
        self.running.add_permits(1);
        tokio::select! {
            permit = self.release.acquire() => {
                permit.unwrap().forget();
                AttemptOutcome::succeeded()
            }
            () = attempt.cancelled() => AttemptOutcome::cancelled(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_task_runs_once_within_the_workers_slots() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    world.worker(&dispatcher, TENANT, slots(100), Noop);
    world.run(1, 1, api::PlannedAsset::default()).await;
    until("the first task ran", async || world.reports.finished() == 1).await;
    let begun = std::time::Instant::now();
    world.run(2, 5_000, api::PlannedAsset::default()).await;
    until("all tasks ran", async || world.reports.finished() == 5_001).await;
    println!("{:.0} tasks/s", 5_000.0 / begun.elapsed().as_secs_f64());
    until("all slots are free", async || world.owner.live() == 0).await;
    assert!(
        world
            .reports
            .outcomes()
            .iter()
            .all(|outcome| *outcome == (1, api::Outcome::Succeeded))
    );
    assert_eq!(world.owner.claims(), 5_001);
    assert_eq!(
        world.reports.started(),
        0,
        "none lasted long enough to be reported as started"
    );
    dispatcher.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_claim_is_repeated_and_costs_no_slot() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    let held = Held::new();
    world.worker(&dispatcher, TENANT, slots(3), held.clone());
    world.owner.refuse_next(5);
    world.run(1, 8, api::PlannedAsset::default()).await;
    until("all slots are used", async || {
        held.running.available_permits() == 3
    })
    .await;
    assert_eq!(world.owner.live_max(), 3);
    held.release.add_permits(8);
    until("all tasks ran", async || world.reports.finished() == 8).await;
    assert_eq!(world.owner.claims(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_streams_lose_nothing() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    world.worker(&dispatcher, TENANT, slots(20), Noop);
    world.run(1, 2_000, api::PlannedAsset::default()).await;
    for after in [100, 400, 900] {
        until("some tasks ran", async || world.reports.finished() >= after).await;
        world.owner.break_streams();
    }
    until("all tasks ran", async || world.reports.finished() == 2_000).await;
    assert!(
        world
            .reports
            .outcomes()
            .iter()
            .all(|outcome| *outcome == (1, api::Outcome::Succeeded))
    );
    assert_eq!(world.owner.claims(), 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_reaches_the_handler() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    let held = Held::new();
    world.worker(&dispatcher, TENANT, slots(4), held.clone());
    world.run(1, 2, api::PlannedAsset::default()).await;
    until("both run", async || held.running.available_permits() == 2).await;
    world.owner.cancel_all();
    until("both ended", async || world.reports.finished() == 2).await;
    assert_eq!(world.reports.outcomes(), [(1, api::Outcome::Cancelled); 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_worker_finishes_its_attempts() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    let held = Held::new();
    let (handle, task) = world.worker(&dispatcher, TENANT, slots(2), held.clone());
    world.run(1, 9, api::PlannedAsset::default()).await;
    until("two run", async || held.running.available_permits() == 2).await;
    handle.drain();
    held.release.add_permits(9);
    tokio::time::timeout(TEST_TIMEOUT, task)
        .await
        .expect("it does not leave")
        .unwrap()
        .unwrap();
    assert!(world.reports.finished() >= 2);
    assert_eq!(
        world.reports.finished(),
        world.owner.claims(),
        "it left nothing behind"
    );
    let mut api = world.peer(servo_model::Service::Gateway, &dispatcher);
    let request = || {
        from_ada(api::ListWorkersRequest {
            tenant: TENANT.into(),
            ..Default::default()
        })
    };
    until("the registry knows", async || {
        let workers = api
            .list_workers(request())
            .await
            .unwrap()
            .into_inner()
            .workers;
        workers.len() == 1 && workers[0].state() == api::WorkerState::Gone
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_share_the_shards_and_workers_follow() {
    let world = World::start().await;
    let first = world.dispatcher().await;
    until("one holds all", async || world.holders().await.len() == 16).await;
    world.worker(&first, TENANT, slots(10), Noop);
    let second = world.dispatcher().await;
    let of = async |running: &Running| {
        world
            .holders()
            .await
            .iter()
            .filter(|address| **address == running.address)
            .count()
    };
    until("both hold half", async || {
        of(&first).await == 8 && of(&second).await == 8
    })
    .await;
    world.run(1, 200, api::PlannedAsset::default()).await;
    until("tasks run wherever their tenant is", async || {
        world.reports.finished() == 200
    })
    .await;
    first.stop().await;
    until("the other one holds all", async || of(&second).await == 16).await;
    // The worker knew only the first instance; a supervisor would restart it with the other
    // address.
    world.worker(&second, TENANT, slots(10), Noop);
    world.run(2, 200, api::PlannedAsset::default()).await;
    until("tasks run again", async || world.reports.finished() == 400).await;
    assert_eq!(world.owner.claims(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_worker_serves_every_tenant() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    world.worker(&dispatcher, "-", slots(5), Noop);
    world.run(1, 20, api::PlannedAsset::default()).await;
    until("all tasks ran", async || world.reports.finished() == 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_attempt_is_reported_as_started() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    let held = Held::new();
    world.worker(&dispatcher, TENANT, slots(1), held.clone());
    world.run(1, 1, api::PlannedAsset::default()).await;
    until("its start is reported", async || {
        world.reports.started() == 1
    })
    .await;
    held.release.add_permits(1);
    until("it ended", async || world.reports.finished() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn task_with_too_large_envelope_fails_with_the_reason() {
    let world = World::start().await;
    let dispatcher = world.dispatcher().await;
    world.worker(&dispatcher, TENANT, slots(3), Noop);
    let config_json = format!("\"{}\"", "x".repeat(70_000));
    world
        .run(
            1,
            1,
            api::PlannedAsset {
                config_json,
                ..api::PlannedAsset::default()
            },
        )
        .await;
    until("the scheduler has received it", async || {
        !world.owner.failed().is_empty()
    })
    .await;
    assert!(
        world.owner.failed()[0].contains("65536 are allowed"),
        "{:?}",
        world.owner.failed()
    );
}
