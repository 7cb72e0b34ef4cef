//! How a task's end travels along its edges.
//!
//! An edge's resolution is its upstream's final state, so it cannot be counted twice. What a task becomes is a
//! function of how its upstreams ended, never of the order in which the news arrived.

use crate::closed::closed_list;
use crate::states::{TaskCause, TaskState, TransitionReason};

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
        /// It succeeded, but left nothing to read: skips what depends on it.
        Withheld = 5, "WITHHELD";
    }
}

impl EdgeResolution {
    /// From the upstream's state and the reason for it; `None` while it has not ended.
    pub const fn of(upstream: TaskState, reason: TransitionReason) -> Option<EdgeResolution> {
        match (upstream, reason) {
            (TaskState::Succeeded, TransitionReason::OutputWithheld) => {
                Some(EdgeResolution::Withheld)
            }
            (TaskState::Succeeded, _) => Some(EdgeResolution::Success),
            (TaskState::Failed, _) => Some(EdgeResolution::Failed),
            (TaskState::Skipped, _) => Some(EdgeResolution::Skipped),
            (TaskState::Cancelled, _) => Some(EdgeResolution::Cancelled),
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
    withheld: u32,
}

impl Tally {
    /// All of them still open.
    pub const fn of(tasks: u32) -> Tally {
        Tally {
            open: tasks,
            failed: 0,
            skipped: 0,
            cancelled: 0,
            withheld: 0,
        }
    }

    /// One that was open has ended.
    pub fn resolve(&mut self, resolution: EdgeResolution) {
        self.open = self.open.saturating_sub(1);
        match resolution {
            EdgeResolution::Success => {}
            EdgeResolution::Failed => self.failed += 1,
            EdgeResolution::Skipped => self.skipped += 1,
            EdgeResolution::Cancelled => self.cancelled += 1,
            EdgeResolution::Withheld => self.withheld += 1,
        }
    }

    /// What a blocked task does about its upstreams; `None` means to wait.
    ///
    /// A failed or skipped upstream decides at once, because nothing the others do can outweigh it. A cancelled
    /// one decides when all have ended: a failure after it would weigh more. So does one without a readable output,
    /// which weighs least.
    pub const fn as_upstreams(&self) -> Option<TaskCause> {
        match self {
            Tally { failed: 1.., .. } | Tally { skipped: 1.., .. } => {
                Some(TaskCause::UpstreamNotSucceeded)
            }
            Tally { open: 1.., .. } => None,
            Tally { cancelled: 1.., .. } => Some(TaskCause::UpstreamCancelled),
            Tally { withheld: 1.., .. } => Some(TaskCause::UpstreamQuarantined),
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
            Tally { withheld: 1.., .. } => Some(TaskCause::ChildWithheld),
            _ => Some(TaskCause::ChildrenSucceeded),
        }
    }
}

/// From ends as they are, when a run is loaded; `None` for a task that has not ended.
impl FromIterator<Option<EdgeResolution>> for Tally {
    fn from_iter<T: IntoIterator<Item = Option<EdgeResolution>>>(ends: T) -> Tally {
        let mut tally = Tally::default();
        for end in ends {
            tally.open += 1;
            if let Some(resolution) = end {
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

    use EdgeResolution::*;

    const OPEN: Option<EdgeResolution> = None;

    fn check(upstreams: &[Option<EdgeResolution>], expected: Option<TaskCause>) {
        assert_eq!(
            Tally::from_iter(upstreams.iter().copied()).as_upstreams(),
            expected,
            "{upstreams:?}"
        );
    }

    #[test]
    fn the_end_of_upstreams_decides() {
        check(&[], Some(TaskCause::UpstreamsSucceeded));
        check(
            &[Some(Success), Some(Success)],
            Some(TaskCause::UpstreamsSucceeded),
        );
        check(&[Some(Success), OPEN], None);
        check(&[OPEN, Some(Failed)], Some(TaskCause::UpstreamNotSucceeded));
        check(
            &[OPEN, Some(Skipped)],
            Some(TaskCause::UpstreamNotSucceeded),
        );
        check(&[Some(Cancelled), OPEN], None);
        check(
            &[Some(Cancelled), Some(Success)],
            Some(TaskCause::UpstreamCancelled),
        );
        check(
            &[Some(Cancelled), Some(Failed)],
            Some(TaskCause::UpstreamNotSucceeded),
        );
        check(&[Some(Withheld), OPEN], None);
        check(
            &[Some(Withheld), Some(Success)],
            Some(TaskCause::UpstreamQuarantined),
        );
        check(
            &[Some(Withheld), Some(Cancelled)],
            Some(TaskCause::UpstreamCancelled),
        );
        check(
            &[Some(Withheld), Some(Skipped)],
            Some(TaskCause::UpstreamNotSucceeded),
        );
    }

    #[test]
    fn a_success_counts_by_what_it_left_to_read() {
        use crate::states::TransitionReason as Reason;
        let of = |reason| EdgeResolution::of(TaskState::Succeeded, reason);
        assert_eq!(of(Reason::ExecutionSucceeded), Some(Success));
        assert_eq!(of(Reason::UpToDate), Some(Success));
        assert_eq!(of(Reason::OutputWithheld), Some(Withheld));
        assert_eq!(
            EdgeResolution::of(TaskState::RetryWait, Reason::RetryScheduled),
            None
        );
    }

    #[test]
    fn a_mapped_task_waits_for_all_children() {
        let children =
            |ends: &[Option<EdgeResolution>]| Tally::from_iter(ends.iter().copied()).as_children();
        assert_eq!(children(&[]), Some(TaskCause::ChildrenSucceeded));
        assert_eq!(children(&[Some(Failed), OPEN]), None);
        assert_eq!(
            children(&[Some(Failed), Some(Cancelled), Some(Skipped)]),
            Some(TaskCause::ChildFailed)
        );
        assert_eq!(
            children(&[Some(Success), Some(Cancelled), Some(Skipped)]),
            Some(TaskCause::ChildCancelled)
        );
        assert_eq!(
            children(&[Some(Success), Some(Skipped)]),
            Some(TaskCause::ChildSkipped)
        );
        assert_eq!(
            children(&[Some(Success), Some(Withheld)]),
            Some(TaskCause::ChildWithheld)
        );
    }

    /// Where a blocked task ends up when the news arrives in this order.
    fn settle(ends: &[EdgeResolution]) -> TaskState {
        let mut tally = Tally::of(u32::try_from(ends.len()).unwrap());
        let mut state = TaskState::Blocked;
        for end in ends {
            tally.resolve(*end);
            state = tally
                .as_upstreams()
                .and_then(|cause| state.on(cause))
                .map_or(state, |(next, _)| next);
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
            prop_assert_eq!(tally, ends.into_iter().map(Some).collect::<Tally>());
        }
    }
}
