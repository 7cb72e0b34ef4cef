//! A task in memory, small enough to keep ten thousand of them per run.

use servo_model::edges::EdgeResolution;
use servo_model::states::{TaskState, TransitionReason};
use servo_model::{AttemptId, Timestamp};

use super::event::Session;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    pub state: TaskState,
    pub reason: TransitionReason,
    /// The number of the last attempt; numbers may be skipped (ADR 13).
    pub attempt: u32,
    /// The number of failures that count towards the policy's `max_attempts`.
    pub failures: u32,
    /// The active attempt, or the last one.
    pub attempt_id: Option<AttemptId>,
    /// The attempt was asked to stop and has not confirmed it yet.
    pub cancelling: bool,
    /// The attempt is delivered by the push queue instead of a worker's stream.
    pub pushed: bool,
    /// The worker process that has the attempt, or had it last.
    pub session: Option<Session>,
    pub worker: Option<[u8; 16]>,
    pub changed_at: Timestamp,
    pub first_ready_at: Option<Timestamp>,
    pub claimed_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// When a timer is due: a retry, or the deadline of the active attempt.
    pub due_at: Option<Timestamp>,
}

impl TaskRow {
    pub const fn planned(at: Timestamp) -> TaskRow {
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
            first_ready_at: None,
            claimed_at: None,
            started_at: None,
            ended_at: None,
            due_at: None,
        }
    }

    /// The number of the next attempt. Each start of Postgres since the task became ready skips one
    /// number, because it may have erased a claim whose worker already runs. `starts` are the known
    /// starts.
    pub fn next_attempt(&self, starts: &[Timestamp]) -> u32 {
        let since = starts
            .iter()
            .filter(|start| **start > self.changed_at)
            .count();
        self.attempt
            .saturating_add(1)
            .saturating_add(u32::try_from(since).unwrap_or(u32::MAX))
    }

    /// How the end of the task resolves the edges to its downstream tasks; `None` before it has
    /// ended.
    pub const fn resolution(&self) -> Option<EdgeResolution> {
        EdgeResolution::of(self.state, self.reason)
    }

    /// Whether this attempt is the active one, whose events count.
    pub fn is_active(&self, attempt: &AttemptId) -> bool {
        self.state.has_attempt() && self.attempt_id.as_ref() == Some(attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(us: i64) -> Timestamp {
        Timestamp::from_unix_us(us)
    }

    #[test]
    fn f23_an_attempt_number_that_a_crash_may_have_erased_is_not_reused() {
        let ready = TaskRow {
            state: TaskState::Ready,
            attempt: 2,
            ..TaskRow::planned(at(1_000))
        };
        assert_eq!(ready.next_attempt(&[]), 3);
        assert_eq!(
            ready.next_attempt(&[at(500), at(1_000)]),
            3,
            "starts before the task became ready do not count"
        );
        assert_eq!(ready.next_attempt(&[at(500), at(1_001), at(2_000)]), 5);
    }
}
