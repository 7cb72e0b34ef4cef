//! A task within its run.

use super::{Machine, Transition, TransitionReason, causes, transitions};
use crate::closed::closed_list;
use crate::event::EventType;

closed_list! {
    TaskState {
        /// The plan holds it; the run has not begun.
        Planned = 1, "PLANNED";
        /// Waits for its upstreams, or for the children it was mapped into.
        Blocked = 2, "BLOCKED";
        /// May run; waits for admission.
        Ready = 3, "READY";
        /// Claimed by the dispatcher: its attempt is active.
        Queued = 4, "QUEUED";
        /// The push queue took it.
        Dispatched = 5, "DISPATCHED";
        /// User code runs.
        Running = 6, "RUNNING";
        /// Waits for the time of its next attempt.
        RetryWait = 7, "RETRY_WAIT";
        /// Ended well.
        Succeeded = 8, "SUCCEEDED";
        /// Ended badly, no try left.
        Failed = 9, "FAILED";
        /// Did not do its work, because of its upstreams or because user code said so.
        Skipped = 10, "SKIPPED";
        /// Stopped on request.
        Cancelled = 11, "CANCELLED";
    }
}

causes! {
    /// What happened to a task. Events of an attempt count only while it is the task's active one; whether a
    /// retry is left, and whether the attempt is being cancelled, is decided before the cause is named.
    TaskCause {
        /// The run begins.
        RunStarted <- [PlanCreated];
        /// The task it is mapped over succeeded and named an item: a child is made.
        ItemMapped <- [TaskFinished];
        /// The last upstream succeeded, or there is none.
        UpstreamsSucceeded <- [PlanCreated, TaskFinished];
        /// An upstream failed or was skipped.
        UpstreamNotSucceeded <- [TaskFinished, TimerFired];
        /// All upstreams ended, one was cancelled, none failed or was skipped.
        UpstreamCancelled <- [TaskFinished, TaskForceCancelled];
        /// All upstreams succeeded, one of them only with a quarantined output and no good version before it.
        UpstreamQuarantined <- [TaskFinished];
        /// All upstreams succeeded and the output is newer than everything it is made from.
        UpToDate <- [PlanCreated, TaskFinished];
        /// All children ended well, or there was no item.
        ChildrenSucceeded <- [TaskFinished];
        /// All children ended well, one of them with nothing that can be read.
        ChildWithheld <- [TaskFinished];
        /// All children ended and one failed.
        ChildFailed <- [TaskFinished, TimerFired];
        /// All children ended, none failed or was cancelled, and one was skipped.
        ChildSkipped <- [TaskFinished];
        /// All children ended, none failed and one was cancelled.
        ChildCancelled <- [TaskFinished, TaskForceCancelled];
        /// The dispatcher took it for a worker or the queue.
        Claimed <- [DispatchRequested];
        /// The push queue accepted the envelope.
        Enqueued <- [DispatchEnqueued];
        /// User code began.
        Started <- [TaskStarted];
        /// User code ended well; readers get its output, or keep an earlier one while it is quarantined.
        Succeeded <- [TaskFinished];
        /// User code ended well; its output is quarantined and there is no good version before it.
        SucceededWithheld <- [TaskFinished];
        /// User code says that there is nothing to do.
        SkippedItself <- [TaskFinished];
        /// The attempt failed and another one is allowed.
        FailedWithRetry <- [TaskFinished];
        /// The attempt failed and no other one is allowed.
        FailedForGood <- [TaskFinished];
        /// A blocking check failed and there is no quarantine.
        CheckFailed <- [TaskFinished];
        /// The worker had to leave and gave the attempt back.
        Interrupted <- [TaskFinished];
        /// The execution timeout passed and another attempt is allowed.
        TimedOutWithRetry <- [TimerFired, TaskFinished];
        /// The execution timeout passed and no other attempt is allowed.
        TimedOutForGood <- [TimerFired, TaskFinished];
        /// The worker went silent and another attempt is allowed.
        LostWithRetry <- [TimerFired];
        /// The worker went silent and no other attempt is allowed.
        LostForGood <- [TimerFired];
        /// The ack deadline passed without a start: a new attempt number, no failure.
        NotPickedUp <- [TimerFired];
        /// The time of the next attempt has come.
        RetryDue <- [TimerFired];
        /// The run is cancelled. What has an attempt keeps it as cancelling.
        RunCancelled <- [RunCancelRequested];
        /// The run lasted too long. What has an attempt keeps it as cancelling.
        RunTimedOut <- [TimerFired];
        /// The cancelling attempt says that it has stopped.
        CancelConfirmed <- [TaskFinished];
        /// The cancelling attempt let its ack, heartbeat or execution deadline pass.
        CancelUnanswered <- [TimerFired];
        /// The cancelling attempt ended with a result all the same.
        FinishedAfterCancel <- [TaskFinished];
        /// Somebody ended an attempt that has not beaten for long.
        ForceCancelled <- [TaskForceCancelled];
    }
}

impl Machine for TaskState {
    type Cause = TaskCause;
    type Reason = TransitionReason;

    const NAME: &'static str = "Task";
    const INITIAL: TaskState = TaskState::Planned;
    const TABLE: &'static [Transition<TaskState>] = transitions! { TaskState, TaskCause, TransitionReason:
        [Planned] RunStarted => Blocked, RunStarted;
        [Planned] ItemMapped => Ready, Mapped;

        [Blocked] UpstreamsSucceeded => Ready, DependenciesSatisfied;
        [Blocked] UpstreamNotSucceeded => Skipped, UpstreamNotSucceeded;
        [Blocked] UpstreamCancelled => Cancelled, UpstreamCancelled;
        [Blocked] UpstreamQuarantined => Skipped, UpstreamQuarantined;
        // Not SKIPPED: that would skip what depends on it, which may well have work to do.
        [Blocked] UpToDate => Succeeded, UpToDate;
        [Blocked] ChildrenSucceeded => Succeeded, ChildrenEnded;
        [Blocked] ChildWithheld => Succeeded, OutputWithheld;
        [Blocked] ChildFailed => Failed, ChildrenEnded;
        [Blocked] ChildSkipped => Skipped, ChildrenEnded;
        [Blocked] ChildCancelled => Cancelled, ChildrenEnded;

        [Ready] Claimed => Queued, EnqueuedForDispatch;
        [Queued] Enqueued => Dispatched, DispatchedToWorker;
        [Queued, Dispatched] NotPickedUp => Ready, DispatchAckTimeout;
        // From QUEUED as well: the worker may be quicker than the news about the queue.
        [Queued, Dispatched] Started => Running, ExecutionStarted;

        // And a finish may be quicker than the news about its start.
        [Queued, Dispatched, Running] Succeeded => Succeeded, ExecutionSucceeded;
        [Queued, Dispatched, Running] SucceededWithheld => Succeeded, OutputWithheld;
        [Queued, Dispatched, Running] SkippedItself => Skipped, SkippedByUserCode;
        [Queued, Dispatched, Running] FailedWithRetry => RetryWait, RetryScheduled;
        [Queued, Dispatched, Running] FailedForGood => Failed, ExecutionFailed;
        [Queued, Dispatched, Running] CheckFailed => Failed, CheckFailed;
        [Queued, Dispatched, Running] Interrupted => RetryWait, Interrupted;
        [Queued, Dispatched, Running] TimedOutWithRetry => RetryWait, TimedOut;
        [Queued, Dispatched, Running] TimedOutForGood => Failed, TimedOut;
        [Running] LostWithRetry => RetryWait, HeartbeatTimeout;
        [Running] LostForGood => Failed, HeartbeatTimeout;
        [RetryWait] RetryDue => Ready, RetryTimerExpired;

        [Planned, Blocked, Ready, RetryWait] RunCancelled => Cancelled, RunCancelled;
        [Queued] RunCancelled => Queued, CancelRequested;
        [Dispatched] RunCancelled => Dispatched, CancelRequested;
        [Running] RunCancelled => Running, CancelRequested;
        [Planned, Blocked, Ready] RunTimedOut => Cancelled, RunTimedOut;
        // It has failed before, and the next attempt will not come.
        [RetryWait] RunTimedOut => Failed, RunTimedOut;
        [Queued] RunTimedOut => Queued, CancelRequested;
        [Dispatched] RunTimedOut => Dispatched, CancelRequested;
        [Running] RunTimedOut => Running, CancelRequested;

        [Queued, Dispatched, Running] CancelConfirmed => Cancelled, RunCancelled;
        [Queued, Dispatched, Running] CancelUnanswered => Cancelled, RunCancelled;
        [Queued, Dispatched, Running] FinishedAfterCancel => Cancelled, LateResult;
        [Queued, Dispatched, Running] ForceCancelled => Cancelled, ForceCancelled;
    };

    fn is_terminal(self) -> bool {
        matches!(
            self,
            TaskState::Succeeded | TaskState::Failed | TaskState::Skipped | TaskState::Cancelled
        )
    }

    fn events(cause: TaskCause) -> &'static [EventType] {
        cause.events()
    }
}

impl TaskState {
    /// Whether an attempt is active: claimed, and not yet ended.
    pub const fn has_attempt(self) -> bool {
        matches!(
            self,
            TaskState::Queued | TaskState::Dispatched | TaskState::Running
        )
    }
}
