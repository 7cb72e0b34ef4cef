//! How many attempts are in flight, which decides whether flushes are batched.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use servo_model::{RunId, ShardId};

use crate::core::Run;

/// At or above this many in-flight attempts of the instance, flushes are batched, because more
/// submissions arrive within moments.
const BATCHING_THRESHOLD: u32 = 16;
/// Runs with fewer in-flight attempts than this are latency-bound and skip batching.
const LATENCY_BOUND_BELOW: u32 = 2;

/// The in-flight attempts of all lanes of an instance. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct InstanceAttempts(Arc<AtomicU32>);

/// The in-flight attempts of one lane, counted per run, because runs are loaded and evicted as a
/// whole.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    by_run: HashMap<RunId, u32>,
    instance: InstanceAttempts,
}

impl InFlight {
    pub(super) fn new(instance: InstanceAttempts) -> InFlight {
        InFlight {
            by_run: HashMap::new(),
            instance,
        }
    }

    /// Records the run's current in-flight count.
    pub(super) fn update(&mut self, run: &Run) {
        self.set(run.header.run_id, run.counts().with_attempt());
    }

    pub(super) fn remove(&mut self, run: RunId) {
        self.set(run, 0);
    }

    pub(super) fn remove_shard(&mut self, shard: ShardId) {
        let all = self.by_run.keys().copied();
        let removed: Vec<RunId> = all.filter(|run| run.shard() == shard).collect();
        removed.into_iter().for_each(|run| self.remove(run));
    }

    pub(super) fn clear(&mut self) {
        let all: Vec<RunId> = self.by_run.keys().copied().collect();
        all.into_iter().for_each(|run| self.remove(run));
    }

    /// Whether every delay of a flush delays the run.
    pub(super) fn is_latency_bound(&self, run: RunId) -> bool {
        self.by_run
            .get(&run)
            .is_none_or(|attempts| *attempts < LATENCY_BOUND_BELOW)
    }

    /// Whether flushes are batched now.
    pub(super) fn is_busy(&self) -> bool {
        self.instance.0.load(Ordering::Relaxed) >= BATCHING_THRESHOLD
    }

    pub(super) fn set(&mut self, run: RunId, attempts: u32) {
        let before = match attempts {
            0 => self.by_run.remove(&run),
            _ => self.by_run.insert(run, attempts),
        };
        let (all, before) = (&self.instance.0, before.unwrap_or(0));
        if attempts >= before {
            all.fetch_add(attempts - before, Ordering::Relaxed);
        } else {
            all.fetch_sub(before - attempts, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::run_id;
    use super::*;

    #[test]
    fn a_run_without_another_attempt_in_flight_is_latency_bound() {
        let mut in_flight = InFlight::default();
        assert!(in_flight.is_latency_bound(run_id(1)));
        in_flight.set(run_id(1), LATENCY_BOUND_BELOW - 1);
        assert!(in_flight.is_latency_bound(run_id(1)));
        in_flight.set(run_id(1), LATENCY_BOUND_BELOW);
        assert!(!in_flight.is_latency_bound(run_id(1)) && in_flight.is_latency_bound(run_id(2)));
    }

    #[test]
    fn attempts_of_other_lanes_count_for_the_instance() {
        let instance = InstanceAttempts::default();
        let mut one = InFlight::new(instance.clone());
        let mut other = InFlight::new(instance);
        one.set(run_id(1), BATCHING_THRESHOLD - 1);
        other.set(run_id(2), 1);
        assert!(one.is_busy() && other.is_busy());
        one.remove(run_id(2));
        assert!(other.is_busy(), "a lane removes only its own runs");
        other.remove(run_id(2));
        assert!(!one.is_busy() && !other.is_busy());
    }

    #[test]
    fn attempts_count_until_their_run_or_shard_is_removed() {
        let mut in_flight = InFlight::default();
        let (one, other) = (run_id(1), run_id(2));
        in_flight.set(one, BATCHING_THRESHOLD - 1);
        assert!(!in_flight.is_busy());
        in_flight.set(other, 2);
        assert!(in_flight.is_busy());
        in_flight.set(other, 1);
        assert!(in_flight.is_busy());
        in_flight.remove(other);
        assert!(!in_flight.is_busy());
        in_flight.set(one, BATCHING_THRESHOLD);
        in_flight.remove(other);
        assert!(
            in_flight.is_busy(),
            "removing an absent run changes nothing"
        );
        in_flight.remove_shard(other.shard());
        assert!(in_flight.is_busy());
        in_flight.remove_shard(one.shard());
        assert!(!in_flight.is_busy());
        assert!(in_flight.by_run.is_empty());
    }
}
