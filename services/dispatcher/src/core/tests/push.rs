//! Workers that are pushed to: a credit for every free slot, and no envelope that is not enqueued
//! is forgotten.

use std::time::Duration;

use servo_model::{AttemptId, Stream, TaskRef, Timestamp};

use super::world::*;
use crate::core::*;

fn push_worker(world: &mut World, slots: u32) -> WorkerKey {
    let key = world.worker_with(1, Some("acme"), slots, |worker| worker.pushed = true);
    let worker = world.admission.workers.get(&key).unwrap().clone();
    world.admission.refresh_push_worker(worker);
    key
}

fn credits(world: &World, worker: &WorkerKey) -> u32 {
    world.admission.workers.get(worker).unwrap().credits
}

fn ended(world: &mut World, claim: &Claim) {
    let ended = vec![Ended {
        attempt_id: claim.attempt_id,
        held: Duration::from_secs(1),
    }];
    let update = Update {
        ended,
        ..no_update(claim.run)
    };
    world.admission.apply_update(STREAM, update, world.now);
}

fn unsent(claim: &Claim) -> SnapshotAttempt {
    SnapshotAttempt {
        attempt_id: claim.attempt_id,
        run: claim.run,
        plan: plan_of(claim.tenant.as_str(), claim.run),
        task: claim.task,
        attempt: claim.attempt,
        worker: Some(claim.worker),
        since: Timestamp::from_unix_seconds(1_000),
        cancelling: false,
        backfill: false,
        pushed: true,
        unsent: Some(DispatchDetails {
            failures: 2,
            item_json: "7".into(),
            trace: Default::default(),
        }),
    }
}

fn deliveries(world: &mut World) -> Vec<AttemptId> {
    let effects = world.admission.take_effects().into_iter();
    let delivered = effects.filter_map(|effect| match effect {
        Effect::Deliver { attempt, .. } => Some(attempt),
        _ => None,
    });
    delivered.collect()
}

#[test]
fn every_free_slot_of_a_push_worker_is_a_credit() {
    let mut world = World::new();
    let worker = push_worker(&mut world, 3);
    world.offer("acme", 5, plain());
    let chosen = world.admit_all();
    assert_eq!((chosen.len(), credits(&world, &worker)), (3, 0));
    assert!(chosen.iter().all(|claim| claim.pushed));
    // The loop reports the worker again; that must not add credits.
    push_worker(&mut world, 3);
    assert_eq!(credits(&world, &worker), 0);
    ended(&mut world, &chosen[0]);
    assert_eq!(
        credits(&world, &worker),
        1,
        "the end of the attempt frees the slot"
    );
    assert_eq!(world.admit_all().len(), 1);
}

#[test]
fn cancelled_attempt_returns_its_slot_once() {
    let mut world = World::new();
    let worker = push_worker(&mut world, 2);
    world.offer("acme", 1, plain());
    let chosen = world.choose();
    let cancelled = vec![chosen[0].attempt_id];
    let update = Update {
        cancelled,
        ..no_update(chosen[0].run)
    };
    world.admission.apply_update(STREAM, update, world.now);
    assert_eq!(
        credits(&world, &worker),
        1,
        "it is held until the attempt ended"
    );
    world.answer(&chosen, &[]);
    ended(&mut world, &chosen[0]);
    assert_eq!(credits(&world, &worker), 2);
}

#[test]
fn f11_unsent_envelope_is_enqueued_by_the_next_holder() {
    let mut before = World::new();
    push_worker(&mut before, 2);
    before.offer("acme", 1, plain());
    let claim = before.admit_all().remove(0);
    // The next holder learns of the attempt before it knows the worker.
    let mut world = World::unreported();
    world.snapshot(claim.run.shard(), vec![], vec![unsent(&claim)]);
    world.read_plans(&plain());
    assert_eq!(deliveries(&mut world), []);
    let worker = push_worker(&mut world, 2);
    assert_eq!(deliveries(&mut world), [claim.attempt_id]);
    assert_eq!(credits(&world, &worker), 1);
    let live = world.admission.live(claim.attempt_id).unwrap();
    let details = live.details.as_ref().unwrap();
    assert_eq!((details.failures, &*details.item_json), (2, "7"));
}

#[test]
fn unreported_queue_entry_is_enqueued_and_reported_again() {
    let mut world = World::new();
    push_worker(&mut world, 2);
    world.offer("acme", 1, plain());
    let claim = world.admit_all().remove(0);
    world.snapshot(claim.run.shard(), vec![], vec![unsent(&claim)]);
    assert_eq!(
        deliveries(&mut world),
        [claim.attempt_id],
        "the same name again is the same entry"
    );
    world.snapshot(
        claim.run.shard(),
        vec![],
        vec![SnapshotAttempt {
            unsent: None,
            ..unsent(&claim)
        }],
    );
    assert_eq!(deliveries(&mut world), [], "the queue is known to have it");
}

#[test]
fn pushed_attempts_stay_within_max_queued_tasks() {
    let mut world = World::new();
    push_worker(&mut world, 10);
    world.limit(
        "acme",
        TenantLimits {
            max_queued_tasks: Some(2),
            ..TenantLimits::default()
        },
    );
    let run = world.offer("acme", 5, plain());
    let chosen = world.admit_all();
    assert_eq!(chosen.len(), 2);
    let (acme, task) = ("acme".parse().unwrap(), TaskRef::planned(4));
    assert_eq!(
        world.admission.explain(&acme, run, task),
        Wait::QueueLimit { limit: 2, used: 2 }
    );
    // A worker that pulls does not use the queue.
    world.worker(2, Some("acme"), 1);
    assert_eq!(world.admit_all().len(), 1);
    ended(&mut world, &chosen[0]);
    assert_eq!(world.admit_all().len(), 1);
}

#[test]
fn limited_queue_is_not_used_until_every_shard_reported() {
    let mut world = World::unreported();
    push_worker(&mut world, 10);
    world.limit(
        "acme",
        TenantLimits {
            max_queued_tasks: Some(2),
            ..TenantLimits::default()
        },
    );
    let run = servo_model::RunId::from_bytes([7; 16]);
    world.snapshot(run.shard(), vec![], vec![]);
    world.offer_run("acme", run, 0..5, plain());
    assert_eq!(world.admit_all(), []);
    let (acme, task) = ("acme".parse().unwrap(), TaskRef::planned(0));
    assert_eq!(world.admission.explain(&acme, run, task), Wait::LiveUnknown);
    for shard in Stream::Execution
        .shards()
        .filter(|shard| *shard != run.shard())
    {
        world.snapshot(shard, vec![], vec![]);
    }
    assert_eq!(world.admit_all().len(), 2);
}
