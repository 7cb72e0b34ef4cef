//! Workers that are pushed to: a credit for every free slot, and nothing that the queue was not given is forgotten.

use servo_model::{AttemptId, TaskRef};

use super::world::*;
use crate::core::*;

fn reach(world: &mut World, slots: u32) -> WorkerKey {
    let key = world.worker_with(1, Some("acme"), slots, |worker| worker.pushed = true);
    let worker = world.admission.workers.get(&key).unwrap().clone();
    world.admission.refresh_push_worker(worker);
    key
}

fn credits(world: &World, worker: &WorkerKey) -> u32 {
    world.admission.workers.get(worker).unwrap().credits
}

fn ended(world: &mut World, claim: &Chosen) {
    let ended = vec![Ended {
        attempt_id: claim.attempt_id,
        held: 1.0,
    }];
    let update = Update {
        shard: claim.run.shard(),
        ended,
        ..Update::default()
    };
    world.admission.apply_update(SOURCE, update, world.now);
}

fn waiting(claim: &Chosen) -> SnapshotAttempt {
    SnapshotAttempt {
        attempt_id: claim.attempt_id,
        run: claim.run,
        plan: plan_of(claim.tenant.as_str(), claim.run),
        task: claim.task,
        attempt: claim.attempt,
        worker: Some(claim.worker),
        since: 1_000.0,
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
fn every_free_slot_is_a_credit() {
    let mut world = World::new();
    let worker = reach(&mut world, 3);
    world.offer("acme", 5, plain());
    let chosen = world.admit_all();
    assert_eq!((chosen.len(), credits(&world, &worker)), (3, 0));
    assert!(chosen.iter().all(|claim| claim.pushed));
    // It is found again at every look, and has no more room for that.
    reach(&mut world, 3);
    assert_eq!(credits(&world, &worker), 0);
    ended(&mut world, &chosen[0]);
    assert_eq!(
        credits(&world, &worker),
        1,
        "nobody grants it, it is free by itself"
    );
    assert_eq!(world.admit_all().len(), 1);
}

#[test]
fn a_cancelled_attempt_gives_its_slot_back_once() {
    let mut world = World::new();
    let worker = reach(&mut world, 2);
    world.offer("acme", 1, plain());
    let chosen = world.choose();
    let cancelled = vec![chosen[0].attempt_id];
    let update = Update {
        shard: chosen[0].run.shard(),
        cancelled,
        ..Update::default()
    };
    world.admission.apply_update(SOURCE, update, world.now);
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
fn f11_what_the_queue_was_not_given_is_given_by_the_successor() {
    let mut before = World::new();
    reach(&mut before, 2);
    before.offer("acme", 1, plain());
    let claim = before.admit_all().remove(0);
    // The successor hears of the attempt before it knows the worker.
    let mut world = World::untold();
    world.snapshot(claim.run.shard(), vec![], vec![waiting(&claim)]);
    world.read_plans(&plain());
    assert_eq!(deliveries(&mut world), []);
    let worker = reach(&mut world, 2);
    assert_eq!(deliveries(&mut world), [claim.attempt_id]);
    assert_eq!(credits(&world, &worker), 1);
    let live = world.admission.live(claim.attempt_id).unwrap();
    let details = live.details.as_ref().unwrap();
    assert_eq!((details.failures, &*details.item_json), (2, "7"));
}

#[test]
fn what_an_owner_did_not_hear_of_is_told_again() {
    let mut world = World::new();
    reach(&mut world, 2);
    world.offer("acme", 1, plain());
    let claim = world.admit_all().remove(0);
    world.snapshot(claim.run.shard(), vec![], vec![waiting(&claim)]);
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
            ..waiting(&claim)
        }],
    );
    assert_eq!(deliveries(&mut world), [], "the queue is known to have it");
}

#[test]
fn no_more_goes_through_the_queue_than_the_tenant_may_have_there() {
    let mut world = World::new();
    reach(&mut world, 10);
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
    // Who pulls is not in the queue.
    world.worker(2, Some("acme"), 1);
    assert_eq!(world.admit_all().len(), 1);
    ended(&mut world, &chosen[0]);
    assert_eq!(world.admit_all().len(), 1);
}

#[test]
fn nothing_goes_through_a_limited_queue_before_all_that_is_there_is_known() {
    let mut world = World::untold();
    reach(&mut world, 10);
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
    for shard in (0..64).filter(|shard| *shard != run.shard()) {
        world.snapshot(shard, vec![], vec![]);
    }
    assert_eq!(world.admit_all().len(), 2);
}
