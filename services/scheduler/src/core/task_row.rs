//! One task as the fold knows it, small enough to keep ten thousand of them per run in memory.

use servo_model::AttemptId;
use servo_model::edges::EdgeResolution;
use servo_model::states::{TaskState, TransitionReason};

use super::Time;
use super::event::Session;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    pub state: TaskState,
    pub reason: TransitionReason,
    /// Counts dispatches.
    pub attempt: u32,
    /// Counts what goes against the policy's `max_attempts`.
    pub failures: u32,
    /// The active attempt, or the last one.
    pub attempt_id: Option<AttemptId>,
    /// Its run is being stopped and the attempt has not confirmed it yet.
    pub cancelling: bool,
    /// Travels by the push queue instead of a worker's stream.
    pub pushed: bool,
    /// The worker process that has the attempt, or had it last.
    pub session: Option<Session>,
    pub worker: Option<[u8; 16]>,
    pub changed_at: Time,
    pub ready_at: Option<Time>,
    pub claimed_at: Option<Time>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// When something must happen by itself: a retry, or the verdict on a silent attempt.
    pub due_at: Option<Time>,
}

impl TaskRow {
    pub const fn planned(at: Time) -> TaskRow {
        TaskRow {
            state: TaskState::Planned,
            reason: TransitionReason::CREATED,
            attempt: 0,
            failures: 0,
            attempt_id: None,
            cancelling: false,
            pushed: false,
            session: None,
            worker: None,
            changed_at: at,
            ready_at: None,
            claimed_at: None,
            started_at: None,
            ended_at: None,
            due_at: None,
        }
    }

    /// The number of its next attempt. A start of Postgres since it became ready may have erased a claim whose worker has
    /// begun, so its number is not given out again: `starts` are all that are known.
    pub fn next_attempt(&self, starts: &[Time]) -> u32 {
        let since = starts
            .iter()
            .filter(|start| **start > self.changed_at)
            .count();
        self.attempt
            .saturating_add(1)
            .saturating_add(u32::try_from(since).unwrap_or(u32::MAX))
    }

    /// What its end means for those who wait for it; `None` before.
    pub const fn resolution(&self) -> Option<EdgeResolution> {
        EdgeResolution::of(self.state, self.reason)
    }

    /// Whether this attempt is the one whose events count.
    pub fn is_active(&self, attempt: &AttemptId) -> bool {
        self.state.has_attempt() && self.attempt_id.as_ref() == Some(attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f23_an_attempt_that_a_crash_may_have_erased_is_not_given_out_again() {
        let ready = TaskRow {
            state: TaskState::Ready,
            attempt: 2,
            ..TaskRow::planned(1_000)
        };
        assert_eq!(ready.next_attempt(&[]), 3);
        assert_eq!(
            ready.next_attempt(&[500, 1_000]),
            3,
            "what was before it became ready erased nothing of it"
        );
        assert_eq!(ready.next_attempt(&[500, 1_001, 2_000]), 5);
    }
}
