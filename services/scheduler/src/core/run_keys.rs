//! The effect of a request under a run key, and how the newest generation of a key is found.
//!
//! Generations have no gaps: generation n + 1 begins only after n has ended, and of two concurrent
//! starts the shard of its run id accepts one. So no counter is needed.

use servo_model::states::{Machine, RunState};

/// How many generations one lookup probes.
const PROBES_MAX: usize = 16;

/// The action when the key already has a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPolicy {
    ReturnExisting,
    Reject,
    RetryIfFailed,
    Force,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Return the existing run.
    Existing,
    /// Start the next generation with all tasks.
    Repeat,
    /// Start the next generation with the tasks that did not succeed.
    Retry,
    /// Refuse the request.
    Conflict,
}

/// Decides by the newest run of the key: its state, and whether its request is the same.
pub fn decide(policy: KeyPolicy, newest: RunState, same: bool) -> Decision {
    match (policy, same) {
        (KeyPolicy::Force, _) if newest.is_terminal() => Decision::Repeat,
        (KeyPolicy::Reject, _) | (_, false) => Decision::Conflict,
        (KeyPolicy::RetryIfFailed, true)
            if newest.is_terminal() && newest != RunState::Succeeded =>
        {
            Decision::Retry
        }
        (_, true) => Decision::Existing,
    }
}

/// The generations to probe next, where `known` exists and `missing` does not; empty once they are
/// adjacent. Steps grow until a generation is missing and shrink afterwards, so a thousand
/// generations take few lookups.
pub fn probes(known: u32, missing: Option<u32>) -> Vec<u32> {
    let Some(missing) = missing else {
        return (1..=PROBES_MAX as u32)
            .map_while(|step| known.checked_mul(1 << step))
            .collect();
    };
    let between = missing.saturating_sub(known + 1);
    let step = between.div_ceil(PROBES_MAX as u32).max(1);
    (1..)
        .map(|nth| known + nth * step)
        .take_while(|probe| *probe < missing)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_decides_by_the_newest_run() {
        use Decision::{Conflict, Existing, Repeat, Retry};
        use KeyPolicy::{Force, Reject, RetryIfFailed, ReturnExisting};
        let (running, succeeded, failed) =
            (RunState::Running, RunState::Succeeded, RunState::Failed);
        for (policy, newest, same, expected) in [
            (ReturnExisting, running, true, Existing),
            (ReturnExisting, failed, true, Existing),
            (ReturnExisting, succeeded, false, Conflict),
            (Reject, succeeded, true, Conflict),
            (Reject, running, false, Conflict),
            (RetryIfFailed, running, true, Existing),
            (RetryIfFailed, succeeded, true, Existing),
            (RetryIfFailed, failed, true, Retry),
            (RetryIfFailed, RunState::Cancelled, true, Retry),
            (RetryIfFailed, RunState::TimedOut, true, Retry),
            (RetryIfFailed, failed, false, Conflict),
            (Force, running, true, Existing),
            (Force, running, false, Conflict),
            (Force, succeeded, true, Repeat),
            (Force, failed, false, Repeat),
        ] {
            assert_eq!(
                decide(policy, newest, same),
                expected,
                "{policy:?} {newest} {same}"
            );
        }
    }

    /// Returns the newest generation and the number of lookups.
    fn search(newest: u32) -> (u32, usize) {
        let (mut known, mut missing, mut lookups) = (1, None, 0);
        loop {
            let probes = probes(known, missing);
            assert!(probes.len() <= PROBES_MAX, "{probes:?}");
            if probes.is_empty() {
                return (known, lookups);
            }
            lookups += 1;
            known = probes
                .iter()
                .copied()
                .filter(|probe| *probe <= newest)
                .max()
                .unwrap_or(known);
            missing = probes
                .into_iter()
                .filter(|probe| *probe > newest)
                .min()
                .or(missing);
        }
    }

    #[test]
    fn the_newest_of_many_generations_is_found_in_few_lookups() {
        for newest in (1..200).chain([1_000, 65_000, 1_000_000]) {
            let (found, lookups) = search(newest);
            assert_eq!(found, newest);
            assert!(lookups <= 7, "{newest} took {lookups} lookups");
        }
        assert!(search(3).1 <= 2);
    }
}
