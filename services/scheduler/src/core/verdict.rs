//! The verdict of the fold about an event.

use servo_model::states::{MaterializationState, RunState};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It took effect.
    Folded,
    /// The same event was folded before.
    Duplicate,
    /// The run was cancelled first: the task is CANCELLED, and the result is stored but not
    /// promoted.
    Late,
    /// It changes nothing.
    Refused(Refusal),
}

/// Why an event changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the run has no such task")]
    TaskUnknown,
    #[error("the attempt is unknown to its run; another attempt may replace it")]
    AttemptUnknown,
    #[error("the attempt is no longer the task's active one")]
    StaleAttempt,
    #[error("another process started this attempt first; exit without doing anything")]
    AlreadyStarted,
    #[error("the attempt was cancelled; do not start it")]
    AttemptCancelled,
    #[error("the attempt was reported before, with another outcome")]
    OutcomeConflict,
    #[error("the run is {0}")]
    RunIs(RunState),
    /// A claim's task is not READY, or not for this attempt. Callers get INVALID_STATE, not the error
    /// reason NOT_READY.
    #[error("the task is not ready for attempt {0}")]
    TaskNotReady(u32),
    #[error("no attempt of the task is active")]
    NoAttempt,
    #[error("the run's version is {0}")]
    Version(u64),
    #[error("the materialization is {0}")]
    MaterializationIs(MaterializationState),
    #[error("the materialization is at version {0}")]
    MaterializationVersion(u64),
    #[error("it is not due")]
    NotDue,
}
