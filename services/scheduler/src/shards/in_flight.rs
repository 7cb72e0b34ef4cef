//! How many attempts are under way.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use servo_model::RunId;

use crate::core::Run;

/// With so many attempts under way at an instance somebody else will ask within moments.
const BATCHING_THRESHOLD: u32 = 16;
/// A run with so many goes on with the others while one of them waits.
const LATENCY_BOUND_BELOW: u32 = 2;

/// The attempts on all lanes of an instance. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct InstanceAttempts(Arc<AtomicU32>);

/// Those on one lane. Kept per run, because memory of a run comes and goes as a whole.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    by_run: HashMap<RunId, u32>,
    instance_attempts: InstanceAttempts,
}

impl InFlight {
    pub(super) fn among(instance_attempts: InstanceAttempts) -> InFlight {
        InFlight {
            by_run: HashMap::new(),
            instance_attempts,
        }
    }

    /// The run stands as it does now.
    pub(super) fn note(&mut self, run: &Run) {
        self.set(run.header.run_id, run.counts().with_attempt());
    }

    pub(super) fn forget(&mut self, run: RunId) {
        self.set(run, 0);
    }

    pub(super) fn drop_shard(&mut self, shard: i16) {
        let all = self.by_run.keys().copied();
        let gone: Vec<RunId> = all.filter(|run| run.shard() == shard).collect();
        gone.into_iter().for_each(|run| self.forget(run));
    }

    /// Whether the run has nothing else to go on with meanwhile.
    pub(super) fn is_latency_bound(&self, run: RunId) -> bool {
        self.by_run
            .get(&run)
            .is_none_or(|attempts| *attempts < LATENCY_BOUND_BELOW)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.instance_attempts.0.load(Ordering::Relaxed) >= BATCHING_THRESHOLD
    }

    fn set(&mut self, run: RunId, attempts: u32) {
        let before = match attempts {
            0 => self.by_run.remove(&run),
            _ => self.by_run.insert(run, attempts),
        };
        let (all, before) = (&self.instance_attempts.0, before.unwrap_or(0));
        match attempts >= before {
            true => all.fetch_add(attempts - before, Ordering::Relaxed),
            false => all.fetch_sub(before - attempts, Ordering::Relaxed),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::run_id;
    use super::*;

    #[test]
    fn a_run_that_has_nothing_else_under_way_is_in_a_hurry() {
        let mut in_flight = InFlight::default();
        assert!(in_flight.is_latency_bound(run_id(1)));
        in_flight.set(run_id(1), LATENCY_BOUND_BELOW - 1);
        assert!(in_flight.is_latency_bound(run_id(1)));
        in_flight.set(run_id(1), LATENCY_BOUND_BELOW);
        assert!(!in_flight.is_latency_bound(run_id(1)) && in_flight.is_latency_bound(run_id(2)));
    }

    #[test]
    fn attempts_on_other_lanes_make_a_crowd_too() {
        let instance_attempts = InstanceAttempts::default();
        let (mut one, mut other) = (
            InFlight::among(instance_attempts.clone()),
            InFlight::among(instance_attempts),
        );
        one.set(run_id(1), BATCHING_THRESHOLD - 1);
        other.set(run_id(2), 1);
        assert!(one.is_busy() && other.is_busy());
        one.forget(run_id(2));
        assert!(other.is_busy(), "what is another's is not forgotten");
        other.forget(run_id(2));
        assert!(!one.is_busy() && !other.is_busy());
    }

    #[test]
    fn attempts_of_all_runs_make_a_crowd_until_they_are_forgotten() {
        let mut in_flight = InFlight::default();
        let (one, other) = (run_id(1), run_id(2));
        in_flight.set(one, BATCHING_THRESHOLD - 1);
        assert!(!in_flight.is_busy());
        in_flight.set(other, 2);
        assert!(in_flight.is_busy());
        in_flight.set(other, 1);
        assert!(in_flight.is_busy());
        in_flight.forget(other);
        assert!(!in_flight.is_busy());
        in_flight.set(one, BATCHING_THRESHOLD);
        in_flight.forget(other);
        assert!(
            in_flight.is_busy(),
            "what is not there is forgotten without harm"
        );
        in_flight.drop_shard(other.shard());
        assert!(in_flight.is_busy());
        in_flight.drop_shard(one.shard());
        assert!(!in_flight.is_busy());
        assert!(in_flight.by_run.is_empty());
    }
}
