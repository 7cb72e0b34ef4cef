//! A run. A terminal run never reopens.

use super::{Machine, Transition, TransitionReason, causes, transitions};
use crate::closed::closed_list;
use crate::event::EventType;

closed_list! {
    RunState {
        /// Accepted; waits for its plan or for a place under max_concurrent_runs.
        Pending = 1, "PENDING";
        /// Its tasks move.
        Running = 2, "RUNNING";
        /// Starts nothing new; what runs goes on.
        Paused = 3, "PAUSED";
        /// Being stopped; waits for the attempts under way.
        Cancelling = 4, "CANCELLING";
        /// Every task succeeded, or was skipped without a failure.
        Succeeded = 5, "SUCCEEDED";
        /// At least one task failed, or there was no plan.
        Failed = 6, "FAILED";
        /// Stopped on request.
        Cancelled = 7, "CANCELLED";
        /// Lasted longer than it may.
        TimedOut = 8, "TIMED_OUT";
    }
}

causes! {
    /// What happened to a run. How its tasks ended is judged when nothing more can move.
    RunCause {
        /// The plan is there and the run may begin.
        Started <- [PlanCreated];
        /// The planner refused the request.
        PlanFailed <- [PlanFailed];
        /// Somebody paused it.
        PauseRequested <- [RunPaused];
        /// Somebody resumed it.
        ResumeRequested <- [RunResumed];
        /// Somebody cancelled it.
        CancelledByUser <- [RunCancelRequested];
        /// Servo cancelled it.
        CancelledBySystem <- [RunCancelRequested];
        /// The longest allowed duration passed.
        DurationPassed <- [TimerFired];
        /// Every task ended, and none failed or was cancelled.
        TasksSucceeded <- [PlanCreated, TaskFinished];
        /// Every task ended and one failed.
        TasksFailed <- [TaskFinished, TimerFired, TaskForceCancelled];
        /// Every task ended, none failed and one was cancelled.
        TasksCancelled <- [TaskFinished, TaskForceCancelled];
        /// Everything has stopped after a cancel.
        CancelCompleted <- [RunCancelRequested, TaskFinished, TimerFired, TaskForceCancelled];
        /// Everything has stopped after the duration passed.
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

        // Nothing is under way yet, so there is nothing to wait for.
        [Pending] CancelledByUser => Cancelled, UserCancelled;
        [Pending] CancelledBySystem => Cancelled, SystemCancelled;
        [Pending] DurationPassed => TimedOut, RunTimedOut;
        [Running, Paused] CancelledByUser => Cancelling, UserCancelled;
        [Running, Paused] CancelledBySystem => Cancelling, SystemCancelled;
        [Running, Paused] DurationPassed => Cancelling, RunTimedOut;
        [Cancelling] CancelCompleted => Cancelled, RunCancelled;
        [Cancelling] TimeoutCompleted => TimedOut, RunTimedOut;

        // A paused run ends as well when what was under way was all there was.
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
