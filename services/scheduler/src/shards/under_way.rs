//! How many attempts are under way on a lane.

use std::collections::HashMap;

use servo_model::RunId;

use crate::core::Run;

/// With so many attempts under way somebody else will ask within moments.
const CROWD: u32 = 16;
/// A run with so many goes on with the others while one of them waits.
const SEVERAL: u32 = 2;

/// Kept per run, because memory of a run comes and goes as a whole.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    by_run: HashMap<RunId, u32>,
    total: u32,
}

impl UnderWay {
    /// The run stands as it does now.
    pub(super) fn note(&mut self, run: &Run) {
        self.set(run.header.run_id, run.counts().with_attempt());
    }

    pub(super) fn forget(&mut self, run: RunId) {
        self.set(run, 0);
    }

    pub(super) fn forget_shard(&mut self, shard: i16) {
        self.by_run.retain(|run, _| run.shard() != shard);
        self.total = self.by_run.values().sum();
    }

    /// Whether the run has nothing else to go on with meanwhile.
    pub(super) fn is_hurried(&self, run: RunId) -> bool {
        self.by_run.get(&run).is_none_or(|attempts| *attempts < SEVERAL)
    }

    pub(super) fn is_crowd(&self) -> bool {
        self.total >= CROWD
    }

    fn set(&mut self, run: RunId, attempts: u32) {
        let before = match attempts {
            0 => self.by_run.remove(&run),
            _ => self.by_run.insert(run, attempts),
        };
        self.total = self.total + attempts - before.unwrap_or(0);
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
        assert!(under_way.is_crowd(), "what is not there is forgotten without harm");
        under_way.forget_shard(other.shard());
        assert!(under_way.is_crowd());
        under_way.forget_shard(one.shard());
        assert!(!under_way.is_crowd());
        assert!(under_way.by_run.is_empty());
    }
}
