//! How many attempts are under way, and who waits for a first one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use servo_model::RunId;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::core::Run;

/// With so many attempts under way at an instance somebody else will ask within moments.
const CROWD: u32 = 16;
/// A run with so many goes on with the others while one of them waits.
const SEVERAL: u32 = 2;

/// For so long everybody makes haste for a run that begins. Longer would be in vain: it waits for a limit, not for a slot
/// that somebody is about to leave.
const NEWCOMERS_PATIENCE: Duration = Duration::from_millis(20);

/// What is under way on all lanes of an instance. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Everybody {
    attempts: Arc<AtomicU32>,
    newcomer: Arc<watch::Sender<Option<Newcomer>>>,
}

/// The last run that began and has no attempt yet.
#[derive(Debug, Clone, Copy)]
struct Newcomer {
    run: RunId,
    until: Instant,
}

/// Those on one lane. Kept per run, because memory of a run comes and goes as a whole.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    by_run: HashMap<RunId, u32>,
    pub(super) everybody: Everybody,
}

impl Everybody {
    /// A run begins. The slot that it waits for may be one of those whose outcomes wait for company.
    pub(super) fn begin(&self, run: RunId, now: Instant) {
        let until = now + NEWCOMERS_PATIENCE;
        self.newcomer.send_replace(Some(Newcomer { run, until }));
    }

    fn served(&self, run: RunId) {
        self.newcomer.send_if_modified(|newcomer| {
            let served = newcomer.is_some_and(|one| one.run == run);
            *newcomer = newcomer.filter(|_| !served);
            // Nobody waits for that.
            false
        });
    }

    #[cfg(test)]
    pub(super) fn newest(&self) -> Option<RunId> {
        self.newcomer.borrow().map(|one| one.run)
    }
}

impl UnderWay {
    pub(super) fn among(everybody: Everybody) -> UnderWay {
        UnderWay { by_run: HashMap::new(), everybody }
    }

    /// The run stands as it does now.
    pub(super) fn note(&mut self, run: &Run) {
        self.set(run.header.run_id, run.counts().with_attempt());
    }

    /// Ends at once while a run that just began has no attempt, else when one begins.
    pub(super) async fn newcomer(&self) {
        let mut newcomer = self.everybody.newcomer.subscribe();
        let waits = |newcomer: &Option<Newcomer>| newcomer.is_some_and(|one| Instant::now() < one.until);
        // The sender lives as long as we do.
        let _ = newcomer.wait_for(waits).await;
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
        self.by_run.get(&run).is_none_or(|attempts| *attempts < SEVERAL)
    }

    pub(super) fn is_crowd(&self) -> bool {
        self.everybody.attempts.load(Ordering::Relaxed) >= CROWD
    }

    fn set(&mut self, run: RunId, attempts: u32) {
        let before = match attempts {
            0 => self.by_run.remove(&run),
            _ => self.by_run.insert(run, attempts),
        };
        let (all, before) = (&self.everybody.attempts, before.unwrap_or(0));
        match attempts >= before {
            true => all.fetch_add(attempts - before, Ordering::Relaxed),
            false => all.fetch_sub(before - attempts, Ordering::Relaxed),
        };
        if before == 0 && attempts > 0 {
            self.everybody.served(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

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
        let (mut one, mut other) = (UnderWay::among(everybody.clone()), UnderWay::among(everybody));
        one.set(run_id(1), CROWD - 1);
        other.set(run_id(2), 1);
        assert!(one.is_crowd() && other.is_crowd());
        one.forget(run_id(2));
        assert!(other.is_crowd(), "what is another's is not forgotten");
        other.forget(run_id(2));
        assert!(!one.is_crowd() && !other.is_crowd());
    }

    #[tokio::test]
    async fn haste_is_made_for_a_newcomer_until_it_is_served_or_had_its_time() {
        let everybody = Everybody::default();
        let (mut one, other) = (UnderWay::among(everybody.clone()), UnderWay::among(everybody));
        let haste = || other.newcomer().now_or_never().is_some();
        let (now, far_off) = (Instant::now(), Instant::now() + Duration::from_secs(3_600));
        assert!(!haste());
        one.everybody.begin(run_id(1), far_off);
        assert!(haste(), "whatever lane it is on");
        one.set(run_id(2), 1);
        assert!(haste(), "another one was served");
        one.set(run_id(1), 1);
        assert!(!haste());

        one.everybody.begin(run_id(3), now.checked_sub(NEWCOMERS_PATIENCE).unwrap());
        assert!(!haste());
        let coming = async { one.everybody.begin(run_id(4), far_off) };
        tokio::join!(other.newcomer(), coming);
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
