//! How the final state of a task propagates along its edges.
//!
//! An edge's resolution is its upstream's final state, so it cannot be counted twice. The next
//! state of a task depends on how its upstreams ended, never on the order in which the events
//! arrived.

use crate::coded_enum::coded_enum;
use crate::states::{TaskCause, TaskState, TransitionReason};

coded_enum! {
    EdgeResolution {
        /// Satisfies the dependency.
        Success = 1, "SUCCESS";
        /// Skips downstream tasks.
        Failed = 2, "FAILED";
        /// Skips downstream tasks.
        Skipped = 3, "SKIPPED";
        /// Cancels downstream tasks.
        Cancelled = 4, "CANCELLED";
        /// The upstream succeeded without a readable output: skips downstream tasks.
        Withheld = 5, "WITHHELD";
    }
}

impl EdgeResolution {
    /// Derived from the upstream's state and its reason; `None` while it has not ended.
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

/// How many tasks of a set are open and how the others ended. The set is the upstreams of a task or
/// the children of a mapped parent. Counts make each update O(1), even for a join of ten thousand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResolutionCounts {
    open: u32,
    failed: u32,
    skipped: u32,
    cancelled: u32,
    withheld: u32,
}

impl ResolutionCounts {
    /// All tasks are open.
    pub const fn of(tasks: u32) -> ResolutionCounts {
        ResolutionCounts {
            open: tasks,
            failed: 0,
            skipped: 0,
            cancelled: 0,
            withheld: 0,
        }
    }

    /// Records that one open task has ended.
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

    /// The cause for a blocked task that follows from its upstreams; `None` means that it waits.
    ///
    /// A failed or skipped upstream decides at once, because no other result can override it. A
    /// cancelled upstream decides only when all have ended, because a later failure would override
    /// it. The same holds for an upstream without a readable output, which has the lowest
    /// precedence.
    pub const fn as_upstreams(&self) -> Option<TaskCause> {
        match self {
            ResolutionCounts { failed: 1.., .. } | ResolutionCounts { skipped: 1.., .. } => {
                Some(TaskCause::UpstreamNotSucceeded)
            }
            ResolutionCounts { open: 1.., .. } => None,
            ResolutionCounts { cancelled: 1.., .. } => Some(TaskCause::UpstreamCancelled),
            ResolutionCounts { withheld: 1.., .. } => Some(TaskCause::UpstreamQuarantined),
            _ => Some(TaskCause::UpstreamsSucceeded),
        }
    }

    /// The cause for a mapped parent that follows from its children; `None` until all of them have
    /// ended.
    pub const fn as_children(&self) -> Option<TaskCause> {
        match self {
            ResolutionCounts { open: 1.., .. } => None,
            ResolutionCounts { failed: 1.., .. } => Some(TaskCause::ChildFailed),
            ResolutionCounts { cancelled: 1.., .. } => Some(TaskCause::ChildCancelled),
            ResolutionCounts { skipped: 1.., .. } => Some(TaskCause::ChildSkipped),
            ResolutionCounts { withheld: 1.., .. } => Some(TaskCause::ChildWithheld),
            _ => Some(TaskCause::ChildrenSucceeded),
        }
    }
}

/// Counts resolutions when a run is loaded; `None` is a task that has not ended.
impl FromIterator<Option<EdgeResolution>> for ResolutionCounts {
    fn from_iter<T: IntoIterator<Item = Option<EdgeResolution>>>(ends: T) -> ResolutionCounts {
        let mut tally = ResolutionCounts::default();
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
            ResolutionCounts::from_iter(upstreams.iter().copied()).as_upstreams(),
            expected,
            "{upstreams:?}"
        );
    }

    #[test]
    fn cause_follows_from_upstream_resolutions() {
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
    fn success_without_readable_output_is_withheld() {
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
    fn mapped_task_waits_for_all_children() {
        let children = |ends: &[Option<EdgeResolution>]| {
            ResolutionCounts::from_iter(ends.iter().copied()).as_children()
        };
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

    /// The final state of a blocked task when the resolutions arrive in this order.
    fn settle(ends: &[EdgeResolution]) -> TaskState {
        let mut tally = ResolutionCounts::of(u32::try_from(ends.len()).unwrap());
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
        fn order_of_resolutions_does_not_matter(
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
        fn incremental_counts_equal_recounting(
            ends in prop::collection::vec(prop::sample::select(EdgeResolution::ALL), 0..6),
        ) {
            let mut tally = ResolutionCounts::of(u32::try_from(ends.len()).unwrap());
            ends.iter().for_each(|end| tally.resolve(*end));
            prop_assert_eq!(tally, ends.into_iter().map(Some).collect::<ResolutionCounts>());
        }
    }
}
