//! Every obstacle is explained with its reason.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_model::TaskRef;

use super::world::*;
use crate::core::*;

const LAST: TaskRef = TaskRef::planned(3);

/// Admits everything that can be admitted and explains the last of four tasks.
fn check(prepare: impl FnOnce(&mut World), kind: Kind, expected: impl FnOnce(&World) -> Wait) {
    let mut world = World::new();
    prepare(&mut world);
    let run = world.offer("acme", 4, kind);
    world.admit_all();
    assert_eq!(
        world.admission.explain(&tenant("acme"), run, LAST),
        expected(&world)
    );
}

#[test]
fn full_pool_names_the_attempts_in_it() {
    let two = |world: &mut World| {
        world.worker(1, Some("acme"), 10);
        let pools = [(Arc::from("db"), 2)].into();
        world.limit(
            "acme",
            TenantLimits {
                pools,
                ..TenantLimits::default()
            },
        );
    };
    check(two, pool("db"), |world| Wait::PoolFull {
        pool: "db".into(),
        limit: 2,
        used: 2,
        holders: world.live.keys().copied().collect(),
    });
}

#[test]
fn every_other_obstacle_has_its_reason() {
    let worker = |world: &mut World| {
        world.worker(1, Some("acme"), 2);
    };
    let capped = |world: &mut World| {
        world.worker(1, Some("acme"), 9);
        world.limit(
            "acme",
            TenantLimits {
                max_concurrent_tasks: Some(2),
                ..TenantLimits::default()
            },
        );
    };
    check(capped, plain(), |_| Wait::TaskLimit { limit: 2, used: 2 });
    check(|_| {}, plain(), |_| Wait::NoWorker);
    let gpu = Kind {
        capability: Some("gpu"),
        ..plain()
    };
    check(worker, gpu, |_| Wait::NoCapableWorker {
        missing: vec!["gpu".into()],
    });
    check(worker, plain(), |_| Wait::FairShare { before: 1 });
    let pause = || Pause {
        pause_id: "p1".into(),
        tenant: tenant("acme").into(),
        workspace: None,
        pool: None,
    };
    check(
        |world| world.admission.set_pauses([pause()]),
        plain(),
        |_| Wait::Paused(pause()),
    );
    let suspended = TenantLimits {
        suspended: true,
        ..TenantLimits::default()
    };
    check(
        |world| world.limit("acme", suspended),
        plain(),
        |_| Wait::Suspended,
    );
    let spent = TenantLimits {
        spent_budgets: [(None, Arc::from("b1"))].into(),
        ..TenantLimits::default()
    };
    check(
        |world| world.limit("acme", spent),
        plain(),
        |_| Wait::BudgetSpent("b1".into()),
    );
    check(
        |world| world.admission.set_limits(Limits::default()),
        plain(),
        |_| Wait::LimitsUnknown,
    );
}

#[test]
fn backfill_cap_is_named_only_while_another_run_can_take_the_slot() {
    let mut world = World::new();
    world.worker(1, Some("acme"), 2);
    let backfill = Kind {
        backfill: true,
        ..plain()
    };
    let run = world.offer("acme", 4, backfill);
    world.admit_all();
    let explain = |world: &World| world.admission.explain(&tenant("acme"), run, LAST);
    assert_eq!(explain(&world), Wait::FairShare { before: 1 });
    let gpu = Kind {
        capability: Some("gpu"),
        ..plain()
    };
    world.offer("acme", 1, gpu);
    assert_eq!(
        explain(&world),
        Wait::FairShare { before: 1 },
        "no worker can run the other task"
    );
    world.offer("acme", 1, plain());
    assert_eq!(explain(&world), Wait::BackfillCap { limit: 1, used: 2 });
}

#[test]
fn claimed_task_is_explained_as_not_ready() {
    let mut world = World::new();
    world.worker(1, Some("acme"), 9);
    let run = world.offer("acme", 4, plain());
    world.admit_all();
    assert_eq!(
        world.admission.explain(&tenant("acme"), run, LAST),
        Wait::NotReady
    );
    let unknown: BTreeSet<_> = world.live.keys().collect();
    assert_eq!(unknown.len(), 4);
}
