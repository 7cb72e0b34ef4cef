//! A sample of the simulation as an ordinary test. `make sim` runs all of it.

#![cfg(test)]

use servo_sim::permutations::{conflicting_pairs, permute};
use servo_sim::{Bug, Stats, run_seed};

const SEEDS: u64 = 100;
/// The hardest bug to find needs some hundred seeds.
const SEEDS_PER_BUG: u64 = 1_000;

#[test]
fn every_run_ends_correctly_under_faults() {
    let mut total = Stats::default();
    for seed in 1..=SEEDS {
        let outcome = run_seed(seed, Bug::None, false);
        assert_eq!(
            outcome.violation, None,
            "replay with `make sim SEED={seed}`"
        );
        assert_eq!(outcome.stats.too_calm(), None, "seed {seed}");
        total.add(&outcome.stats);
    }
    assert_eq!(
        total.rare(SEEDS),
        [],
        "these occur in less than 5 % of the seeds"
    );
}

#[test]
fn a_seed_is_deterministic() {
    for seed in [1, 7, 42] {
        let (once, again) = (
            run_seed(seed, Bug::None, false),
            run_seed(seed, Bug::None, true),
        );
        assert_eq!(
            (once.hash, once.stats.events),
            (again.hash, again.stats.events),
            "seed {seed}"
        );
    }
    assert_ne!(
        run_seed(1, Bug::None, false).hash,
        run_seed(2, Bug::None, false).hash
    );
}

#[test]
fn every_planted_bug_is_found() {
    for bug in Bug::ALL {
        let found =
            (1..=SEEDS_PER_BUG).find(|seed| run_seed(*seed, bug, false).violation.is_some());
        assert!(
            found.is_some(),
            "{SEEDS_PER_BUG} seeds do not find the bug: {}",
            bug.description()
        );
    }
}

/// INV-1, INV-2, F1 and F26: order and repeats change nothing, except between conflicting events.
#[test]
fn inv_1_and_2_runs_fold_equally_in_every_order() {
    for seed in 1..=500 {
        permute(seed, 20).unwrap_or_else(|found| panic!("run {seed}: {found}"));
    }
}

#[test]
fn f01_the_first_of_two_ends_of_an_attempt_wins() {
    let by_first = conflicting_pairs().unwrap();
    assert!(
        by_first.values().all(|pairs| *pairs >= 13),
        "each end with each other one: {by_first:?}"
    );
}
