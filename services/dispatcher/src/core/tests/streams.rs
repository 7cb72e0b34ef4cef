//! Streams break, shards move, plans load late, workers reconnect: nothing is lost and nothing is
//! delivered twice.

use std::collections::BTreeSet;
use std::time::Duration;

use servo_model::{AdmissionShard, AttemptId, Epoch, RunId, ShardId, Stream, TaskRef, Timestamp};

use super::world::*;
use crate::core::*;

const NEXT: SchedulerStreamId = SchedulerStreamId(2);

fn reported(claim: &Claim) -> SnapshotAttempt {
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
        pushed: claim.pushed,
        unsent: None,
    }
}

/// A running attempt of worker 1 that an earlier dispatcher claimed.
fn earlier_attempt(task: u32) -> SnapshotAttempt {
    let run = RunId::from_bytes([64; 16]);
    SnapshotAttempt {
        attempt_id: AttemptId::from_bytes([1; 16]),
        run,
        plan: plan_of("acme", run),
        task: TaskRef::planned(task),
        attempt: 1,
        worker: Some(servo_model::WorkerId::from_bytes([1; 16])),
        since: Timestamp::from_unix_seconds(1_000),
        cancelling: false,
        backfill: false,
        pushed: false,
        unsent: None,
    }
}

fn snapshot(world: &mut World, shard: ShardId, live: Vec<SnapshotAttempt>) {
    let whole = Snapshot {
        shard,
        epoch: Epoch::new(2),
        first: true,
        last: true,
        ready: vec![],
        live,
    };
    world.admission.apply_snapshot(NEXT, whole, world.now);
}

fn delivered(world: &mut World) -> BTreeSet<AttemptId> {
    let deliveries = world
        .admission
        .take_effects()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Deliver { attempt, .. } => Some(attempt),
            _ => None,
        });
    deliveries.collect()
}

#[test]
fn next_snapshot_resolves_unanswered_claims() {
    let mut world = World::new();
    let worker = world.worker(1, Some("acme"), 2);
    let run = world.offer("acme", 2, plain());
    let chosen = world.choose();
    assert_eq!(chosen.len(), 2);
    world.admission.stream_closed(STREAM);
    world.admission.stream_opened(NEXT, AdmissionShard::all());
    assert_eq!(
        world.admission.workers.get(&worker).unwrap().credits,
        0,
        "both may have been accepted"
    );
    snapshot(&mut world, run.shard(), vec![reported(&chosen[0])]);
    assert_eq!(delivered(&mut world), [chosen[0].attempt_id].into());
    assert_eq!(
        world.admission.workers.get(&worker).unwrap().credits,
        1,
        "the other one was never accepted"
    );
    assert_eq!(world.admission.live_of(&tenant("acme")).count(), 1);
}

#[test]
fn live_attempts_stay_counted_while_their_shard_has_no_holder() {
    let mut world = World::new();
    world.limit(
        "acme",
        TenantLimits {
            max_concurrent_tasks: Some(2),
            ..TenantLimits::default()
        },
    );
    world.worker(1, Some("acme"), 9);
    let run = world.offer("acme", 1, plain());
    world.admit_all();
    world.admission.shard_gone(STREAM, run.shard());
    let other = world.offer("acme", 5, plain());
    assert_ne!(other.shard(), run.shard());
    assert_eq!(world.admit_all().len(), 1, "one of two slots is still held");
}

#[test]
fn ready_tasks_of_a_lost_shard_are_not_claimed() {
    let mut world = World::new();
    let run = world.offer("acme", 3, plain());
    world.admission.shard_gone(STREAM, run.shard());
    world.worker(1, Some("acme"), 9);
    assert_eq!(world.admit_all(), []);
    assert_eq!(
        world
            .admission
            .explain(&tenant("acme"), run, TaskRef::planned(0)),
        Wait::NotReady
    );
}

#[test]
fn tasks_of_an_incomplete_snapshot_are_not_claimed() {
    let mut world = World::unreported();
    world.worker(1, Some("acme"), 9);
    let run = RunId::from_bytes([7; 16]);
    let part = |ordinal, first, last| Snapshot {
        shard: run.shard(),
        epoch: Epoch::new(1),
        first,
        last,
        ready: vec![ReadyRun {
            run,
            plan: plan_of("acme", run),
            backfill: false,
            trace: Default::default(),
            tasks: vec![offered(ordinal, 1)],
        }],
        live: vec![],
    };
    world
        .admission
        .apply_snapshot(STREAM, part(0, true, false), world.now);
    world.read_plans(&plain());
    assert_eq!(world.admit_all(), []);
    world
        .admission
        .apply_snapshot(STREAM, part(1, false, true), world.now);
    world.read_plans(&plain());
    assert_eq!(world.admit_all().len(), 2);
}

#[test]
fn cancelled_claim_is_not_delivered_and_delivered_one_is_stopped() {
    let mut world = World::new();
    let worker = world.worker(1, Some("acme"), 2);
    let run = world.offer("acme", 2, plain());
    let first = world.choose();
    world.answer(&first[..], &[]);
    world.offer_run("acme", run, 5..6, plain());
    world.admission.add_credits(&worker, 1);
    let pending = world.choose();
    let cancelled: Vec<_> = first
        .iter()
        .chain(&pending)
        .map(|claim| claim.attempt_id)
        .collect();
    let update = Update {
        cancelled: cancelled.clone(),
        ..no_update(run)
    };
    world
        .admission
        .apply_update(STREAM, update.clone(), world.now);
    world.admission.apply_update(STREAM, update, world.now);
    let stopped: Vec<_> = world.admission.take_effects();
    let cancel = |attempt: &AttemptId| Effect::Cancel {
        worker: worker.clone(),
        attempt: *attempt,
    };
    assert_eq!(
        stopped,
        cancelled[..2].iter().map(cancel).collect::<Vec<_>>()
    );
    world.answer(&pending, &[]);
    assert!(!world.delivered.contains(&pending[0].attempt_id));
    assert_eq!(
        world.admission.workers.get(&worker).unwrap().credits,
        1,
        "its credit came back, once"
    );
    assert_eq!(
        world.admission.live_of(&tenant("acme")).count(),
        3,
        "they hold their slots until they ended"
    );
}

#[test]
fn reconnecting_worker_gets_lost_envelopes_again() {
    let mut world = World::new();
    let worker = world.worker(1, Some("acme"), 3);
    world.offer("acme", 2, plain());
    let chosen = world.choose();
    world.admission.disconnect_worker(&worker);
    world.answer(&chosen, &[]);
    assert_eq!(
        world.delivered,
        BTreeSet::new(),
        "its worker is disconnected"
    );
    world.worker(1, Some("acme"), 3);
    assert_eq!(
        world.admission.workers.get(&worker).unwrap().credits,
        1,
        "two are on their way"
    );
    world.admission.reconcile_worker(&worker, &BTreeSet::new());
    assert_eq!(delivered(&mut world).len(), 2);
    // The worker reports one of them and an unknown attempt.
    let unknown = AttemptId::from_bytes([9; 16]);
    world
        .admission
        .reconcile_worker(&worker, &[chosen[0].attempt_id, unknown].into());
    let effects = world.admission.take_effects();
    let again = Effect::Deliver {
        worker: worker.clone(),
        attempt: chosen[1].attempt_id,
    };
    assert_eq!(
        effects,
        [
            again,
            Effect::Cancel {
                worker,
                attempt: unknown
            }
        ]
    );
}

#[test]
fn sent_envelope_is_not_sent_to_another_session_of_the_worker() {
    let mut world = World::new();
    let worker = world.worker(1, Some("acme"), 3);
    world.offer("acme", 1, plain());
    let sent = world.choose();
    world.answer(&sent, &[]);
    assert_eq!(world.delivered, [sent[0].attempt_id].into());
    world.offer("acme", 1, plain());
    let claimed = world.choose();
    world.admission.disconnect_worker(&worker);
    world.worker_with(1, Some("acme"), 3, |worker| {
        worker.session = "second".into()
    });
    world.admission.reconcile_worker(&worker, &BTreeSet::new());
    assert_eq!(
        world.admission.take_effects(),
        [],
        "the first process may have begun it"
    );
    world.answer(&claimed, &[]);
    assert!(
        world.delivered.contains(&claimed[0].attempt_id),
        "an envelope that was never sent goes to the new session"
    );
}

#[test]
fn task_offered_again_during_its_claim_is_not_claimed_twice() {
    let mut world = World::new();
    let worker = world.worker(1, Some("acme"), 3);
    let run = world.offer("acme", 1, plain());
    let claimed = world.choose();
    for answered in [false, true] {
        if answered {
            world.answer(&claimed, &[]);
        }
        world.offer_run("acme", run, 0..1, plain());
        assert_eq!(world.choose(), [], "answered: {answered}");
        assert_eq!(
            world.admission.workers.get(&worker).unwrap().credits,
            2,
            "its credit came back"
        );
    }
}

#[test]
fn handover_completes_when_all_claims_are_delivered() {
    let mut world = World::new();
    world.worker(1, Some("acme"), 3);
    world.offer("acme", 1, plain());
    let claimed = world.choose();
    world
        .admission
        .begin_handover([tenant("acme").admission_shard()]);
    world.offer("acme", 1, plain());
    assert_eq!(world.choose(), [], "nothing more is chosen");
    assert!(
        !world.admission.is_handed_over(|_| false),
        "a claim waits for its answer"
    );
    world.answer(&claimed, &[]);
    assert!(
        !world.admission.is_handed_over(|_| true),
        "its envelope waits for what the task reads"
    );
    assert!(world.admission.is_handed_over(|_| false));
    assert_eq!(world.delivered, [claimed[0].attempt_id].into());
}

#[test]
fn pool_counts_attempts_whose_plan_is_not_loaded() {
    let mut world = World::unreported();
    let pools = [(std::sync::Arc::from("db"), 2)].into();
    world.limit(
        "acme",
        TenantLimits {
            pools,
            ..TenantLimits::default()
        },
    );
    world.worker(1, Some("acme"), 9);
    let run = RunId::from_bytes([64; 16]);
    let old = Claim {
        stream_id: STREAM,
        tenant: tenant("acme"),
        run,
        task: TaskRef::planned(0),
        attempt: 1,
        attempt_id: AttemptId::from_bytes([1; 16]),
        admission_epoch: Epoch::new(1),
        worker: servo_model::WorkerId::from_bytes([1; 16]),
        pushed: false,
    };
    for shard in Stream::Execution.shards() {
        world.snapshot(
            shard,
            vec![],
            if shard == run.shard() {
                vec![reported(&old)]
            } else {
                vec![]
            },
        );
    }
    let read = world.admission.take_effects();
    assert_eq!(read, [Effect::LoadPlan(plan_of("acme", run))]);
    world.offer("acme", 5, pool("db"));
    assert_eq!(world.admit_all().len(), 1, "the old one may be in the pool");
    world.admission.plan_loaded(
        &plan_of("acme", run),
        &plain().admission_plan(&plan_of("acme", run)),
        world.now,
    );
    assert_eq!(world.admit_all().len(), 1, "it was not");
}

#[test]
fn losing_an_admission_shard_forgets_its_tenants() {
    let mut world = World::new();
    world.worker(1, None, 3);
    world.offer("acme", 9, plain());
    world.admit_all();
    let shard = tenant("acme").admission_shard();
    world.admission.set_held(
        AdmissionShard::all()
            .filter(|held| *held != shard)
            .map(|held| (held, Epoch::new(1)))
            .collect(),
    );
    assert_eq!(world.admission.live_of(&tenant("acme")).count(), 0);
    world.offer("acme", 9, plain());
    assert_eq!(world.admit_all(), []);
}

#[test]
fn same_worker_id_in_another_tenant_has_no_effect() {
    for (owner, evil_connects_first) in [
        (Some("acme"), false),
        (Some("acme"), true),
        (None, false),
        (None, true),
    ] {
        let mut world = World::new();
        let early = evil_connects_first.then(|| world.worker(1, Some("evil"), 2));
        let worker = world.worker(1, owner, 2);
        let evil = early.unwrap_or_else(|| world.worker(1, Some("evil"), 2));
        assert_ne!(evil, worker);
        world.offer("acme", 1, plain());
        let chosen = world.choose();
        let credits =
            |world: &World, key| world.admission.workers.get(key).map(|known| known.credits);
        assert_eq!(
            (credits(&world, &worker), credits(&world, &evil)),
            (Some(1), Some(2)),
            "{owner:?}"
        );
        world.admission.drain_worker(&evil);
        assert!(
            !world.admission.workers.get(&worker).unwrap().draining,
            "it is not evil's to drain"
        );

        // While its worker is disconnected, no other worker gets the attempt.
        world.admission.disconnect_worker(&worker);
        world.answer(&chosen, &[]);
        world
            .admission
            .reconcile_worker(&evil, &[chosen[0].attempt_id].into());
        assert_eq!(
            (&world.delivered, world.admission.attempts_of(&evil).count()),
            (&[].into(), 0)
        );
        world.worker(1, owner, 2);
        world.admission.reconcile_worker(&worker, &BTreeSet::new());
        let attempt = chosen[0].attempt_id;
        assert_eq!(
            world.admission.take_effects(),
            [Effect::Deliver {
                worker: worker.clone(),
                attempt
            }]
        );
        world.end(attempt, Duration::from_secs(1));
        assert_eq!(
            credits(&world, &evil),
            Some(2),
            "another worker's credits are unchanged"
        );
    }
}

#[test]
fn attempt_cancelled_before_its_envelope_returns_its_credit_once() {
    let mut world = World::new();
    let worker = world.worker(1, Some("acme"), 2);
    world.offer("acme", 1, plain());
    let chosen = world.choose();
    world.answer(&chosen, &[]);
    // The envelope waits for the inputs of the task.
    let attempt = chosen[0].attempt_id;
    let update = Update {
        cancelled: vec![attempt],
        ..no_update(chosen[0].run)
    };
    world.admission.apply_update(STREAM, update, world.now);
    let credits = |world: &World| world.admission.workers.get(&worker).unwrap().credits;
    assert_eq!(credits(&world), 1);
    world.admission.envelope_not_sent(attempt);
    world.admission.envelope_not_sent(attempt);
    assert_eq!(credits(&world), 2);
    world.admission.reconcile_worker(&worker, &BTreeSet::new());
    assert_eq!(
        delivered(&mut world),
        BTreeSet::new(),
        "a cancelled attempt is not delivered"
    );
    let ended = vec![Ended {
        attempt_id: attempt,
        held: Duration::from_secs(1),
    }];
    let update = Update {
        ended,
        ..no_update(chosen[0].run)
    };
    world.admission.apply_update(STREAM, update, world.now);
    assert_eq!(credits(&world), 2);
}

#[test]
fn thousands_of_repeated_offers_are_skipped_without_recursion() {
    // Far less stack than a frame per task would need.
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let offered_again = small.spawn(|| {
        let mut world = World::new();
        world.worker(1, Some("acme"), 3_000);
        let run = world.offer("acme", 2_000, plain());
        assert_eq!(world.admit_all().len(), 2_000);
        world.offer_run("acme", run, 0..2_000, plain());
        assert_eq!(world.choose(), []);
    });
    offered_again.unwrap().join().unwrap();
}

#[test]
fn reconnecting_worker_stops_cancelled_attempts_before_all_shards_have_reported() {
    for owner in [Some("acme"), None] {
        let mut world = World::unreported();
        let worker = world.worker(1, owner, 2);
        let cancelling = SnapshotAttempt {
            cancelling: true,
            ..earlier_attempt(1)
        };
        let running = SnapshotAttempt {
            attempt_id: AttemptId::from_bytes([2; 16]),
            ..earlier_attempt(2)
        };
        let attempt = cancelling.attempt_id;
        let has = [attempt, running.attempt_id, AttemptId::from_bytes([9; 16])];
        world.snapshot(cancelling.run.shard(), vec![], vec![cancelling, running]);
        world.read_plans(&plain());
        world.admission.reconcile_worker(&worker, &has.into());
        assert_eq!(
            world.admission.take_effects(),
            [Effect::Cancel { worker, attempt }],
            "the unknown attempt may be one of a shard that has not reported: {owner:?}"
        );
    }
}

#[test]
fn end_of_an_attempt_from_before_its_run_was_known_keeps_newer_attempts_counted() {
    let mut world = World::unreported();
    world.worker(1, Some("acme"), 9);
    let old = earlier_attempt(1);
    let run = old.run;
    let ready = ReadyRun {
        run,
        plan: old.plan.clone(),
        backfill: false,
        trace: Default::default(),
        tasks: vec![offered(1, 1)],
    };
    world.snapshot(run.shard(), vec![ready], vec![old.clone()]);
    world.read_plans(&plain());
    assert_eq!(world.admit_all().len(), 1);
    let live_of_run = |world: &World| {
        let known = world.admission.tenants[&tenant("acme")].runs.get(&run);
        known.map(|run| run.live)
    };
    assert_eq!(live_of_run(&world), Some(1), "the attempt chosen here");
    let ended = vec![Ended {
        attempt_id: old.attempt_id,
        held: Duration::from_secs(1),
    }];
    let update = Update {
        ended,
        ..no_update(run)
    };
    world.admission.apply_update(STREAM, update, world.now);
    assert_eq!(
        live_of_run(&world),
        Some(1),
        "the run is forgotten too early"
    );
}

#[test]
fn plan_loaded_after_its_shard_was_lost_does_not_bring_the_tenant_back() {
    let mut world = World::unreported();
    let old = earlier_attempt(1);
    let plan = old.plan.clone();
    world.snapshot(old.run.shard(), vec![], vec![old]);
    world.admission.set_held(Default::default());
    world
        .admission
        .plan_loaded(&plan, &plain().admission_plan(&plan), world.now);
    assert!(world.admission.tenants.is_empty());
    assert!(world.admission.dirty.is_empty());
}
