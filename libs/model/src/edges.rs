//! How a task's end travels along its edges.
//!
//! An edge's resolution is its upstream's final state, so it cannot be counted twice. What a task becomes is a
//! function of how its upstreams ended, never of the order in which the news arrived.

use crate::closed::closed_list;
use crate::states::{TaskCause, TaskState};

closed_list! {
    EdgeResolution {
        /// Satisfies the dependency.
        Success = 1, "SUCCESS";
        /// Skips what depends on it.
        Failed = 2, "FAILED";
        /// Skips what depends on it.
        Skipped = 3, "SKIPPED";
        /// Cancels what depends on it.
        Cancelled = 4, "CANCELLED";
    }
}

impl EdgeResolution {
    /// `None` while the upstream has not ended.
    pub const fn of(upstream: TaskState) -> Option<EdgeResolution> {
        match upstream {
            TaskState::Succeeded => Some(EdgeResolution::Success),
            TaskState::Failed => Some(EdgeResolution::Failed),
            TaskState::Skipped => Some(EdgeResolution::Skipped),
            TaskState::Cancelled => Some(EdgeResolution::Cancelled),
            _ => None,
        }
    }
}

/// How a set of tasks stands: the upstreams of one, or the children of a mapped one. Kept as counts, so that one
/// end costs the same for a join of ten thousand as for a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    open: u32,
    failed: u32,
    skipped: u32,
    cancelled: u32,
}

impl Tally {
    /// All of them still open.
    pub const fn of(tasks: u32) -> Tally {
        Tally { open: tasks, failed: 0, skipped: 0, cancelled: 0 }
    }

    /// One that was open has ended.
    pub fn resolve(&mut self, resolution: EdgeResolution) {
        self.open = self.open.saturating_sub(1);
        match resolution {
            EdgeResolution::Success => {}
            EdgeResolution::Failed => self.failed += 1,
            EdgeResolution::Skipped => self.skipped += 1,
            EdgeResolution::Cancelled => self.cancelled += 1,
        }
    }

    /// What a blocked task does about its upstreams; `None` means to wait.
    ///
    /// A failed or skipped upstream decides at once, because nothing the others do can outweigh it. A cancelled
    /// one decides when all have ended: a failure after it would weigh more.
    pub const fn as_upstreams(&self) -> Option<TaskCause> {
        match self {
            Tally { failed: 1.., .. } | Tally { skipped: 1.., .. } => Some(TaskCause::UpstreamNotSucceeded),
            Tally { open: 1.., .. } => None,
            Tally { cancelled: 1.., .. } => Some(TaskCause::UpstreamCancelled),
            _ => Some(TaskCause::UpstreamsSucceeded),
        }
    }

    /// What a mapped task does about its children; `None` means to wait. It waits for all of them.
    pub const fn as_children(&self) -> Option<TaskCause> {
        match self {
            Tally { open: 1.., .. } => None,
            Tally { failed: 1.., .. } => Some(TaskCause::ChildFailed),
            Tally { cancelled: 1.., .. } => Some(TaskCause::ChildCancelled),
            Tally { skipped: 1.., .. } => Some(TaskCause::ChildSkipped),
            _ => Some(TaskCause::ChildrenSucceeded),
        }
    }
}

/// From states as they are, when a run is loaded.
impl FromIterator<TaskState> for Tally {
    fn from_iter<T: IntoIterator<Item = TaskState>>(states: T) -> Tally {
        let mut tally = Tally::default();
        for state in states {
            tally.open += 1;
            if let Some(resolution) = EdgeResolution::of(state) {
                tally.resolve(resolution);
            }
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::states::Machine;

    fn check(upstreams: &[TaskState], expected: Option<TaskCause>) {
        assert_eq!(Tally::from_iter(upstreams.iter().copied()).as_upstreams(), expected, "{upstreams:?}");
    }

    #[test]
    fn the_end_of_upstreams_decides() {
        use TaskState::*;
        check(&[], Some(TaskCause::UpstreamsSucceeded));
        check(&[Succeeded, Succeeded], Some(TaskCause::UpstreamsSucceeded));
        check(&[Succeeded, Running], None);
        check(&[RetryWait, Failed], Some(TaskCause::UpstreamNotSucceeded));
        check(&[Ready, Skipped], Some(TaskCause::UpstreamNotSucceeded));
        check(&[Cancelled, Running], None);
        check(&[Cancelled, Succeeded], Some(TaskCause::UpstreamCancelled));
        check(&[Cancelled, Failed], Some(TaskCause::UpstreamNotSucceeded));
    }

    #[test]
    fn a_mapped_task_waits_for_all_children() {
        use TaskState::*;
        let children = |states: &[TaskState]| Tally::from_iter(states.iter().copied()).as_children();
        assert_eq!(children(&[]), Some(TaskCause::ChildrenSucceeded));
        assert_eq!(children(&[Failed, Running]), None);
        assert_eq!(children(&[Failed, Cancelled, Skipped]), Some(TaskCause::ChildFailed));
        assert_eq!(children(&[Succeeded, Cancelled, Skipped]), Some(TaskCause::ChildCancelled));
        assert_eq!(children(&[Succeeded, Skipped]), Some(TaskCause::ChildSkipped));
    }

    /// Where a blocked task ends up when the news arrives in this order.
    fn settle(ends: &[EdgeResolution]) -> TaskState {
        let mut tally = Tally::of(u32::try_from(ends.len()).unwrap());
        let mut state = TaskState::Blocked;
        for end in ends {
            tally.resolve(*end);
            state = tally.as_upstreams().and_then(|cause| state.on(cause)).map_or(state, |(next, _)| next);
        }
        state
    }

    proptest! {
        #[test]
        fn the_order_of_news_does_not_matter(
            ends in prop::collection::vec(prop::sample::select(EdgeResolution::ALL), 1..6),
            seed in any::<prop::sample::Index>(),
        ) {
            let mut turned = ends.clone();
            turned.rotate_left(seed.index(ends.len()));
            turned.reverse();
            prop_assert_eq!(settle(&ends), settle(&turned));
            prop_assert_ne!(settle(&ends), TaskState::Blocked);
        }

        #[test]
        fn counting_up_equals_counting_anew(
            ends in prop::collection::vec(prop::sample::select(EdgeResolution::ALL), 0..6),
        ) {
            let mut tally = Tally::of(u32::try_from(ends.len()).unwrap());
            ends.iter().for_each(|end| tally.resolve(*end));
            let finals = [TaskState::Succeeded, TaskState::Failed, TaskState::Skipped, TaskState::Cancelled];
            let states = ends.iter().map(|end| finals[EdgeResolution::ALL.iter().position(|e| e == end).unwrap()]);
            prop_assert_eq!(tally, states.collect::<Tally>());
        }
    }
}
