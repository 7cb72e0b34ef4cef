//! A run. A terminal run never reopens.

use super::{Machine, Transition, TransitionReason, causes, transitions};
use crate::coded_enum::coded_enum;
use crate::event::EventType;

coded_enum! {
    RunState {
        /// Accepted; waits for its plan or for capacity under max_concurrent_runs.
        Pending = 1, "PENDING";
        /// Its tasks are being executed.
        Running = 2, "RUNNING";
        /// Starts nothing new; attempts in flight continue.
        Paused = 3, "PAUSED";
        /// Being cancelled; waits for the attempts in flight.
        Cancelling = 4, "CANCELLING";
        /// Every task succeeded, or was skipped without a failure.
        Succeeded = 5, "SUCCEEDED";
        /// At least one task failed, or there was no plan.
        Failed = 6, "FAILED";
        /// Stopped on request.
        Cancelled = 7, "CANCELLED";
        /// Exceeded its maximum duration.
        TimedOut = 8, "TIMED_OUT";
    }
}

causes! {
    /// An event in the life of a run. The final state of its tasks is judged when no task can make
    /// progress.
    RunCause {
        /// The plan exists and the run may begin.
        Started <- [PlanCreated];
        /// The planner refused the request.
        PlanFailed <- [PlanFailed];
        /// A user paused it.
        PauseRequested <- [RunPaused];
        /// A user resumed it.
        ResumeRequested <- [RunResumed];
        /// A user cancelled it.
        CancelledByUser <- [RunCancelRequested];
        /// Servo cancelled it.
        CancelledBySystem <- [RunCancelRequested];
        /// The maximum duration has passed.
        DurationPassed <- [TimerFired];
        /// Every task ended, and none failed or was cancelled.
        TasksSucceeded <- [PlanCreated, TaskFinished];
        /// Every task ended and one failed.
        TasksFailed <- [TaskFinished, TimerFired, TaskForceCancelled];
        /// Every task ended, none failed and one was cancelled.
        TasksCancelled <- [TaskFinished, TaskForceCancelled];
        /// Every attempt has stopped after a cancel.
        CancelCompleted <- [RunCancelRequested, TaskFinished, TimerFired, TaskForceCancelled];
        /// Every attempt has stopped after the maximum duration passed.
        TimeoutCompleted <- [TimerFired, TaskFinished, TaskForceCancelled];
    }
}

impl Machine for RunState {
    type Cause = RunCause;
    type Reason = TransitionReason;

    const NAME: &'static str = "Run";
    const INITIAL: RunState = RunState::Pending;
    const TABLE: &'static [Transition<RunState>] = transitions! { RunState, RunCause, TransitionReason:
        [Pending] Started => Running, RunStarted;
        [Pending] PlanFailed => Failed, PlanFailed;
        [Running] PauseRequested => Paused, Paused;
        [Paused] ResumeRequested => Running, Resumed;

        // No attempt is in flight yet, so there is nothing to wait for.
        [Pending] CancelledByUser => Cancelled, UserCancelled;
        [Pending] CancelledBySystem => Cancelled, SystemCancelled;
        [Pending] DurationPassed => TimedOut, RunTimedOut;
        [Running, Paused] CancelledByUser => Cancelling, UserCancelled;
        [Running, Paused] CancelledBySystem => Cancelling, SystemCancelled;
        [Running, Paused] DurationPassed => Cancelling, RunTimedOut;
        [Cancelling] CancelCompleted => Cancelled, RunCancelled;
        [Cancelling] TimeoutCompleted => TimedOut, RunTimedOut;

        // A paused run also ends when the attempts in flight were its last ones.
        [Running, Paused] TasksSucceeded => Succeeded, AllTasksSucceeded;
        [Running, Paused] TasksFailed => Failed, TasksFailed;
        [Running, Paused] TasksCancelled => Cancelled, TasksCancelled;
    };

    fn is_terminal(self) -> bool {
        matches!(
            self,
            RunState::Succeeded | RunState::Failed | RunState::Cancelled | RunState::TimedOut
        )
    }

    fn events(cause: RunCause) -> &'static [EventType] {
        cause.events()
    }
}
