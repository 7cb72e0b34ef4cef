//! How many attempts are under way.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use servo_model::RunId;

use crate::core::Run;

/// With so many attempts under way at an instance somebody else will ask within moments.
const CROWD: u32 = 16;
/// A run with so many goes on with the others while one of them waits.
const SEVERAL: u32 = 2;

/// The attempts on all lanes of an instance. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Everybody(Arc<AtomicU32>);

/// Those on one lane. Kept per run, because memory of a run comes and goes as a whole.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    by_run: HashMap<RunId, u32>,
    everybody: Everybody,
}

impl UnderWay {
    pub(super) fn among(everybody: Everybody) -> UnderWay {
        UnderWay {
            by_run: HashMap::new(),
            everybody,
        }
    }

    /// The run stands as it does now.
    pub(super) fn note(&mut self, run: &Run) {
        self.set(run.header.run_id, run.counts().with_attempt());
    }

    pub(super) fn forget(&mut self, run: RunId) {
        self.set(run, 0);
    }

    pub(super) fn forget_shard(&mut self, shard: i16) {
        let all = self.by_run.keys().copied();
        let gone: Vec<RunId> = all.filter(|run| run.shard() == shard).collect();
        gone.into_iter().for_each(|run| self.forget(run));
    }

    /// Whether the run has nothing else to go on with meanwhile.
    pub(super) fn is_hurried(&self, run: RunId) -> bool {
        self.by_run
            .get(&run)
            .is_none_or(|attempts| *attempts < SEVERAL)
    }

    pub(super) fn is_crowd(&self) -> bool {
        self.everybody.0.load(Ordering::Relaxed) >= CROWD
    }

    fn set(&mut self, run: RunId, attempts: u32) {
        let before = match attempts {
            0 => self.by_run.remove(&run),
            _ => self.by_run.insert(run, attempts),
        };
        let (all, before) = (&self.everybody.0, before.unwrap_or(0));
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
        let mut under_way = UnderWay::default();
        assert!(under_way.is_hurried(run_id(1)));
        under_way.set(run_id(1), SEVERAL - 1);
        assert!(under_way.is_hurried(run_id(1)));
        under_way.set(run_id(1), SEVERAL);
        assert!(!under_way.is_hurried(run_id(1)) && under_way.is_hurried(run_id(2)));
    }

    #[test]
    fn attempts_on_other_lanes_make_a_crowd_too() {
        let everybody = Everybody::default();
        let (mut one, mut other) = (
            UnderWay::among(everybody.clone()),
            UnderWay::among(everybody),
        );
        one.set(run_id(1), CROWD - 1);
        other.set(run_id(2), 1);
        assert!(one.is_crowd() && other.is_crowd());
        one.forget(run_id(2));
        assert!(other.is_crowd(), "what is another's is not forgotten");
        other.forget(run_id(2));
        assert!(!one.is_crowd() && !other.is_crowd());
    }

    #[test]
    fn attempts_of_all_runs_make_a_crowd_until_they_are_forgotten() {
        let mut under_way = UnderWay::default();
        let (one, other) = (run_id(1), run_id(2));
        under_way.set(one, CROWD - 1);
        assert!(!under_way.is_crowd());
        under_way.set(other, 2);
        assert!(under_way.is_crowd());
        under_way.set(other, 1);
        assert!(under_way.is_crowd());
        under_way.forget(other);
        assert!(!under_way.is_crowd());
        under_way.set(one, CROWD);
        under_way.forget(other);
        assert!(
            under_way.is_crowd(),
            "what is not there is forgotten without harm"
        );
        under_way.forget_shard(other.shard());
        assert!(under_way.is_crowd());
        under_way.forget_shard(one.shard());
        assert!(!under_way.is_crowd());
        assert!(under_way.by_run.is_empty());
    }
}
