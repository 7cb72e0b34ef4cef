//! Shares over simulated time, on 50 shared slots with tasks of 100 ms.

use std::collections::BTreeMap;
use std::time::Duration;

use servo_model::Timestamp;

use super::world::*;
use crate::core::*;

const SLOTS: u32 = 50;
const TASK: Duration = Duration::from_millis(100);

/// Returns worker seconds per tenant after `seconds`. Every tenant has more work than it can get.
fn simulate(weights: &[(&str, u32)], seconds: u64) -> BTreeMap<String, Duration> {
    let mut world = World::new();
    world.worker(1, None, SLOTS);
    for (index, (name, weight)) in weights.iter().enumerate() {
        world.limit(
            name,
            TenantLimits {
                weight_millis: *weight,
                ..TenantLimits::default()
            },
        );
        // The size of a backlog must not matter.
        let runs = if index == 0 { 30 } else { 3 };
        for _ in 0..runs {
            world.offer(name, 2_000, plain());
        }
    }
    run_for(&mut world, seconds)
}

/// Ends tasks of equal length in the order they started, spread over time.
fn run_for(world: &mut World, seconds: u64) -> BTreeMap<String, Duration> {
    let mut served = BTreeMap::new();
    let mut ends: std::collections::VecDeque<(Timestamp, Claim)> = Default::default();
    let end = world.now.plus(Duration::from_secs(seconds));
    for (number, claim) in (1..).zip(world.admit_all()) {
        ends.push_back((world.now.plus(TASK * number / SLOTS), claim));
    }
    while let Some((at, claim)) = ends.pop_front() {
        if at > end {
            break;
        }
        world.now = at;
        world.end(claim.attempt_id, TASK);
        *served.entry(claim.tenant.to_string()).or_default() += TASK;
        for claim in world.admit_all() {
            ends.push_back((world.now.plus(TASK), claim));
        }
    }
    served
}

fn check_ratio(served: &BTreeMap<String, Duration>, left: &str, right: &str, expected: f64) {
    let ratio = served[left].div_duration_f64(served[right]);
    assert!(
        (ratio / expected - 1.0).abs() < 0.05,
        "{left}:{right} is {ratio}, not {expected} ({served:?})"
    );
}

#[test]
fn equal_weights_get_equal_shares_regardless_of_backlog() {
    let served = simulate(&[("acme", 1_000), ("beta", 1_000)], 10);
    check_ratio(&served, "acme", "beta", 1.0);
    let all: Duration = served.values().sum();
    assert!(
        all.as_secs_f64() > 0.95 * 10.0 * f64::from(SLOTS),
        "slots were unused: {all:?}"
    );
}

#[test]
fn weights_one_to_three_get_shares_one_to_three() {
    let served = simulate(&[("acme", 1_000), ("beta", 3_000)], 10);
    check_ratio(&served, "beta", "acme", 3.0);
}

#[test]
fn late_tenant_gets_the_next_slot_but_no_compensation() {
    let mut world = World::new();
    world.worker(1, None, SLOTS);
    for _ in 0..30 {
        world.offer("acme", 2_000, plain());
    }
    run_for(&mut world, 10);
    // Lets the running tasks end before the next phase begins.
    world.now = world.now.plus(TASK);
    let left: Vec<_> = world.live.keys().copied().collect();
    left.into_iter()
        .for_each(|attempt| world.end(attempt, TASK));
    world.offer("beta", 2_000, plain());
    world.offer("beta", 2_000, plain());
    let first = world.admit_all();
    let counts: Vec<_> = per_tenant(&first)
        .into_iter()
        .map(|(count, _)| count.0)
        .collect();
    assert_eq!(counts, [25, 25], "the newcomer neither waits nor takes all");
}

#[test]
fn late_tenant_gets_the_first_slot_that_becomes_free() {
    // Ends arrive several at once; it must not matter which tenant they belong to.
    for ending in ["acme", "zeta"] {
        let mut world = World::new();
        world.worker(1, None, SLOTS);
        for tenant in ["acme", "zeta"] {
            for _ in 0..20 {
                world.offer(tenant, 2_000, plain());
            }
        }
        run_for(&mut world, 10);
        world.admit_all();
        world.offer("beta", 1, plain());
        assert!(world.admit_all().is_empty(), "all slots are taken");
        let of_one = world
            .live
            .values()
            .filter(|claim| claim.tenant.as_str() == ending);
        let ended: Vec<_> = of_one.map(|claim| claim.attempt_id).take(5).collect();
        ended
            .into_iter()
            .for_each(|attempt| world.end(attempt, TASK));
        let next = world.admit_all();
        assert_eq!(
            (next.len(), next[0].tenant.as_str()),
            (5, "beta"),
            "after ends of {ending}"
        );
    }
}

#[test]
fn runs_of_a_tenant_share_slots_and_higher_priority_goes_first() {
    let mut world = World::new();
    let worker = world.worker(1, Some("acme"), 10);
    let first = world.offer("acme", 100, plain());
    assert_eq!(world.admit_all().len(), 10);
    let second = world.offer("acme", 100, plain());
    let urgent = world.offer(
        "acme",
        2,
        Kind {
            priority: 5,
            ..plain()
        },
    );
    world.admission.add_credits(&worker, 12);
    let chosen = world.admit_all();
    let of = |run| chosen.iter().filter(|claim| claim.run == run).count();
    assert_eq!(
        chosen[..2]
            .iter()
            .filter(|claim| claim.run == urgent)
            .count(),
        2
    );
    assert_eq!((of(first), of(second), of(urgent)), (5, 5, 2));
}

#[test]
fn backfills_have_a_floor_and_a_cap() {
    let mut world = World::new();
    world.worker(1, Some("acme"), 20);
    let normal = world.offer(
        "acme",
        100,
        Kind {
            priority: 9,
            ..plain()
        },
    );
    let backfill = world.offer(
        "acme",
        100,
        Kind {
            backfill: true,
            ..plain()
        },
    );
    let chosen = world.admit_all();
    let of = |run| chosen.iter().filter(|claim| claim.run == run).count();
    assert_eq!(
        (of(normal), of(backfill)),
        (18, 2),
        "a tenth is the floor, however urgent the rest is"
    );

    let mut world = World::new();
    let worker = world.worker(1, Some("acme"), 20);
    let backfill = world.offer(
        "acme",
        100,
        Kind {
            backfill: true,
            priority: 9,
            ..plain()
        },
    );
    assert_eq!(world.admit_all().len(), 20, "alone it takes everything");
    world.offer("acme", 100, plain());
    for claim in world
        .live
        .values()
        .cloned()
        .collect::<Vec<_>>()
        .into_iter()
        .take(15)
    {
        world.end(claim.attempt_id, Duration::from_secs(1));
    }
    let chosen = world.admit_all();
    let backfills = chosen.iter().filter(|claim| claim.run == backfill).count();
    assert_eq!(
        (chosen.len(), backfills),
        (15, 5),
        "half is the cap while others wait"
    );
    assert_eq!(world.admission.workers.get(&worker).unwrap().credits, 0);
}
