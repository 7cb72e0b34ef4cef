//! No interleaving exceeds a cap, and a limit of one tenant or pool does not block others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use servo_model::{Stream, TenantScope};

use super::world::*;
use crate::core::*;

/// A step of the simulation.
#[derive(Debug, Clone)]
enum Step {
    Offer {
        tenant: usize,
        tasks: u32,
        pool: usize,
    },
    /// Chooses, and refuses the claims at these indexes.
    Claim {
        refused: Vec<u32>,
    },
    /// Chooses, and loses the stream before the answer. The claims at these indexes were accepted.
    Break {
        accepted: Vec<u32>,
    },
    End(usize),
    Cap {
        tenant: usize,
        cap: u32,
    },
    Time(Duration),
}

const TENANTS: [&str; 3] = ["acme", "beta", "gamma"];
const POOLS: [Option<&str>; 3] = [None, Some("db"), Some("api")];
const POOL_SLOTS: u32 = 2;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..3_usize, 1..6_u32, 0..3_usize).prop_map(|(tenant, tasks, pool)| Step::Offer { tenant, tasks, pool }),
        4 => proptest::collection::vec(0..4_u32, 0..3).prop_map(|refused| Step::Claim { refused }),
        1 => proptest::collection::vec(0..4_u32, 0..3).prop_map(|accepted| Step::Break { accepted }),
        4 => (0..64_usize).prop_map(Step::End),
        1 => (0..3_usize, 1..5_u32).prop_map(|(tenant, cap)| Step::Cap { tenant, cap }),
        2 => (0..3_000_u64).prop_map(|ms| Step::Time(Duration::from_millis(ms))),
    ];
    proptest::collection::vec(step, 1..60)
}

fn limits(cap: u32) -> TenantLimits {
    let pools =
        [("db", POOL_SLOTS), ("api", POOL_SLOTS)].map(|(name, slots)| (Arc::from(name), slots));
    TenantLimits {
        max_concurrent_tasks: Some(cap),
        pools: pools.into(),
        ..TenantLimits::default()
    }
}

/// A world with caps, and the pool of each run.
struct Capped {
    world: World,
    caps: [u32; 3],
    pools: BTreeMap<servo_model::RunId, Option<&'static str>>,
    stream_id: u64,
}

impl Capped {
    fn new() -> Capped {
        let mut world = World::new();
        for name in TENANTS {
            world.limit(name, limits(3));
        }
        world.worker(1, None, 6);
        Capped {
            world,
            caps: [3; 3],
            pools: BTreeMap::new(),
            stream_id: STREAM.0,
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Offer {
                tenant,
                tasks,
                pool,
            } => {
                let kind = Kind {
                    pool: POOLS[pool],
                    ..plain()
                };
                if self.pools.len() < 200 && self.stream_id == STREAM.0 {
                    let run = self.world.offer(TENANTS[tenant], tasks, kind);
                    self.pools.insert(run, POOLS[pool]);
                }
            }
            Step::Claim { refused } => {
                let chosen = self.world.choose();
                self.check_caps(&chosen);
                self.world.answer(&chosen, &refused);
            }
            Step::Break { accepted } => self.break_stream(&accepted),
            Step::End(which) if !self.world.live.is_empty() && self.stream_id == STREAM.0 => {
                let attempt = *self
                    .world
                    .live
                    .keys()
                    .nth(which % self.world.live.len())
                    .unwrap();
                self.world.end(attempt, Duration::from_millis(500));
            }
            Step::End(_) => {}
            Step::Cap { tenant, cap } => {
                self.caps[tenant] = cap;
                self.world.limit(TENANTS[tenant], limits(cap));
            }
            Step::Time(passed) => self.world.now = self.world.now.plus(passed),
        }
    }

    /// Closes the stream for good: live attempts stay counted, and nothing more is chosen.
    fn break_stream(&mut self, accepted: &[u32]) {
        let chosen = self.world.choose();
        self.check_caps(&chosen);
        self.world.admission.stream_closed(STREAM);
        self.stream_id = 0;
        for (index, claim) in (0..).zip(&chosen) {
            if accepted.contains(&index) {
                self.world.live.insert(claim.attempt_id, claim.clone());
            }
        }
        assert!(
            self.world.choose().is_empty(),
            "there is no stream for claims"
        );
    }

    /// Live attempts and claims in flight never exceed a cap. Attempts from before a cap was
    /// lowered may stay.
    fn check_caps(&self, chosen: &[Claim]) {
        let mut all: BTreeMap<_, _> = self.world.live.clone();
        all.extend(chosen.iter().map(|claim| (claim.attempt_id, claim.clone())));
        for (name, cap) in TENANTS.iter().zip(self.caps) {
            let of = |claims: &mut dyn Iterator<Item = &Claim>| {
                claims
                    .filter(|claim| claim.tenant.as_str() == *name)
                    .cloned()
                    .collect::<Vec<_>>()
            };
            let mine = of(&mut all.values());
            let new = of(&mut chosen.iter());
            assert!(
                new.is_empty() || mine.len() <= cap as usize,
                "{name}: {} of {cap}",
                mine.len()
            );
            for pool in ["db", "api"] {
                let held = mine
                    .iter()
                    .filter(|claim| self.pools[&claim.run] == Some(pool))
                    .count();
                assert!(held <= POOL_SLOTS as usize, "{name}: {held} in pool {pool}");
            }
        }
        assert!(all.len() <= 6, "the worker granted 6 credits");
    }
}

proptest! {
    #[test]
    fn caps_and_pools_are_never_exceeded(steps in steps()) {
        let mut world = Capped::new();
        for step in steps {
            world.apply(step);
        }
    }

    #[test]
    fn choosing_is_deterministic(steps in steps()) {
        let run = |steps: &[Step]| {
            let mut world = Capped::new();
            for step in steps {
                world.apply(step.clone());
            }
            world.world.admission.choose(world.world.now, CLAIMS_PER_BATCH_MAX)
        };
        prop_assert_eq!(run(&steps), run(&steps));
    }

    #[test]
    fn tenant_without_caps_gets_a_free_worker_at_once(steps in steps()) {
        // Whatever happened before, a tenant without caps gets a free worker at once.
        let mut world = Capped::new();
        for step in steps {
            world.apply(step);
        }
        if world.stream_id == STREAM.0 {
            world.world.worker(9, Some("delta"), 1);
            let run = world.world.offer("delta", 1, plain());
            let chosen = world.world.choose();
            prop_assert!(chosen.iter().any(|claim| claim.run == run));
        }
    }
}

#[test]
fn tenant_at_its_cap_does_not_block_others() {
    let mut world = World::new();
    world.limit(
        "acme",
        TenantLimits {
            max_concurrent_tasks: Some(1),
            ..TenantLimits::default()
        },
    );
    world.worker(1, None, 10);
    world.offer("acme", 100, plain());
    world.offer("beta", 100, plain());
    let chosen = world.admit_all();
    let names: Vec<_> = per_tenant(&chosen)
        .into_iter()
        .map(|(count, name)| (count.0, name))
        .collect();
    assert_eq!(names, [(9, "beta".to_owned()), (1, "acme".to_owned())]);
}

#[test]
fn full_pool_blocks_neither_other_tasks_nor_its_own_run() {
    let mut world = World::new();
    world.limit("acme", limits(10));
    world.worker(1, Some("acme"), 10);
    let pooled = world.offer("acme", 100, pool("db"));
    let free = world.offer("acme", 4, plain());
    let chosen = world.admit_all();
    let of = |run| chosen.iter().filter(|claim| claim.run == run).count();
    assert_eq!((of(pooled), of(free)), (2, 4));
    let held = chosen
        .iter()
        .find(|claim| claim.run == pooled)
        .unwrap()
        .attempt_id;
    world.end(held, Duration::from_secs(1));
    assert_eq!(
        world.admit_all().len(),
        1,
        "one slot of the pool is free again"
    );
}

#[test]
fn capped_tenant_waits_until_every_shard_reported() {
    let mut world = World::unreported();
    world.limit(
        "acme",
        TenantLimits {
            max_concurrent_tasks: Some(1),
            ..TenantLimits::default()
        },
    );
    world.worker(1, None, 10);
    let run = servo_model::RunId::from_bytes([0; 16]);
    let ready = |name: &str| ReadyRun {
        run,
        plan: plan_of(name, run),
        backfill: false,
        trace: Default::default(),
        tasks: vec![offered(0, 1), offered(1, 1)],
    };
    world.snapshot(run.shard(), vec![ready("acme")], vec![]);
    world.read_plans(&plain());
    assert_eq!(
        world.admit_all(),
        [],
        "63 shards may hold live attempts of acme"
    );
    for shard in Stream::Execution
        .shards()
        .filter(|shard| *shard != run.shard())
    {
        world.snapshot(shard, vec![], vec![]);
    }
    assert_eq!(world.admit_all().len(), 1);
}

#[test]
fn worker_gets_no_more_than_its_credits_and_refusal_returns_one() {
    let mut world = World::new();
    world.worker(1, Some("acme"), 2);
    world.offer("acme", 5, plain());
    let chosen = world.choose();
    assert_eq!(chosen.len(), 2);
    assert!(world.choose().is_empty());
    world.answer(&chosen, &[1]);
    assert_eq!(world.choose().len(), 1);
}

#[test]
fn worker_gets_only_tasks_it_can_run() {
    let mut world = World::new();
    let able = world.worker_with(1, Some("acme"), 3, |worker| {
        worker.capabilities = BTreeSet::from([Arc::from("gpu")]);
    });
    world.worker(2, Some("acme"), 9);
    world.worker_with(3, Some("acme"), 9, |worker| {
        worker.pools = BTreeSet::from([Arc::from("db")])
    });
    world.worker_with(4, Some("acme"), 9, |worker| {
        worker.workspaces = BTreeSet::from(["dev".parse().unwrap()])
    });
    world.worker(5, Some("beta"), 9);
    world.offer(
        "acme",
        5,
        Kind {
            capability: Some("gpu"),
            ..plain()
        },
    );
    let chosen = world.admit_all();
    assert_eq!(chosen.len(), 3);
    assert!(chosen.iter().all(|claim| claim.worker == able.id));
    world.offer("acme", 20, pool("db"));
    let workers: BTreeSet<_> = world
        .admit_all()
        .iter()
        .map(|claim| claim.worker.as_bytes()[0])
        .collect();
    assert_eq!(workers, [2, 3].into());
}

#[test]
fn nothing_is_chosen_while_limits_are_unknown_or_paused() {
    let mut world = World::new();
    world.worker(1, None, 10);
    world.admission.set_limits(Limits::default());
    world.offer("acme", 1, plain());
    assert_eq!(world.admit_all(), []);
    world.admission.set_limits(Limits::none());
    let all_tenants = Pause {
        pause_id: "all".into(),
        tenant: TenantScope::All,
        workspace: None,
        pool: None,
    };
    world.admission.set_pauses([all_tenants]);
    assert_eq!(world.admit_all(), []);
    world.admission.set_pauses([]);
    assert_eq!(world.admit_all().len(), 1);
}
