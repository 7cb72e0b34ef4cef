//! The counts are those of admission, and unknown until every shard has reported.

use std::sync::Arc;
use std::time::Duration;

use servo_model::Stream;

use super::world::*;
use crate::core::*;

#[track_caller]
fn check(world: &World, name: &str, live: u32, queued: u32, pools: &[(&str, u32)]) {
    let pools = pools
        .iter()
        .map(|(pool, slots)| (Arc::from(*pool), *slots))
        .collect();
    assert_eq!(
        world.admission.limit_counts(&tenant(name)),
        Some(LimitCounts {
            live,
            queued,
            pools
        })
    );
}

#[test]
fn live_attempts_count_from_claim_to_end() {
    let mut world = World::new();
    world.worker(1, None, 10);
    check(&world, "acme", 0, 0, &[]);
    world.offer("acme", 2, pool("db"));
    world.offer("acme", 1, plain());
    world.offer("beta", 1, pool("db"));
    let chosen = world.choose();
    check(&world, "acme", 3, 0, &[("db", 2)]);
    check(&world, "beta", 1, 0, &[("db", 1)]);
    let refused = (0..)
        .zip(&chosen)
        .filter(|(_, claim)| claim.tenant == tenant("beta"));
    let refused: Vec<u32> = refused.map(|(index, _)| index).collect();
    world.answer(&chosen, &refused);
    check(&world, "acme", 3, 0, &[("db", 2)]);
    check(&world, "beta", 0, 0, &[]);
    let mine: Vec<_> = world.live.keys().copied().collect();
    mine.into_iter()
        .for_each(|attempt| world.end(attempt, Duration::from_secs(1)));
    check(&world, "acme", 0, 0, &[]);
}

#[test]
fn pushed_attempts_also_count_as_queued() {
    let mut world = World::new();
    world.worker_with(1, Some("acme"), 2, |worker| worker.pushed = true);
    world.worker(2, Some("acme"), 1);
    world.offer("acme", 5, plain());
    assert_eq!(world.admit_all().len(), 3);
    check(&world, "acme", 3, 2, &[]);
}

#[test]
fn pool_holders_are_listed_oldest_first() {
    let mut world = World::new();
    world.worker(1, Some("acme"), 10);
    world.offer("acme", 1, plain());
    world.admit_all();
    let mut expected = Vec::new();
    for _ in 0..3 {
        world.offer("acme", 1, pool("db"));
        expected.push(world.admit_all()[0].attempt_id);
        world.now = world.now.plus(Duration::from_secs(1));
    }
    let holders_of = |name: &str, pool: &str| {
        let holders = world
            .admission
            .pool_holders(&tenant(name), pool)
            .into_iter();
        holders.map(|live| live.attempt_id).collect::<Vec<_>>()
    };
    assert_eq!(holders_of("acme", "db"), expected);
    assert_eq!(
        (holders_of("acme", "api"), holders_of("beta", "db")),
        (vec![], vec![])
    );
}

#[test]
fn usage_is_unknown_until_every_shard_reported() {
    let mut world = World::unreported();
    let mut shards = Stream::Execution.shards();
    let last = shards.next_back().unwrap();
    for shard in shards {
        world.snapshot(shard, vec![], vec![]);
    }
    assert_eq!(world.admission.limit_counts(&tenant("acme")), None);
    world.snapshot(last, vec![], vec![]);
    check(&world, "acme", 0, 0, &[]);
    // The counts stay valid while a scheduler is away, because only this dispatcher can add to
    // them.
    world.admission.stream_closed(STREAM);
    check(&world, "acme", 0, 0, &[]);
}
