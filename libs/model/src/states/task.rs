//! A task within its run.

use super::{Machine, Transition, TransitionReason, causes, transitions};
use crate::coded_enum::coded_enum;
use crate::event::EventType;

coded_enum! {
    TaskState {
        /// Part of the plan; the run has not begun.
        Planned = 1, "PLANNED";
        /// Waits for its upstreams, or for the children it was mapped into.
        Blocked = 2, "BLOCKED";
        /// Can run; waits for admission.
        Ready = 3, "READY";
        /// Claimed by the dispatcher: its attempt is active.
        Queued = 4, "QUEUED";
        /// The push queue accepted its envelope.
        Dispatched = 5, "DISPATCHED";
        /// User code runs.
        Running = 6, "RUNNING";
        /// Waits until its next attempt is due.
        RetryWait = 7, "RETRY_WAIT";
        /// Ended successfully.
        Succeeded = 8, "SUCCEEDED";
        /// Ended unsuccessfully, no retry left.
        Failed = 9, "FAILED";
        /// Did not do its work, because of its upstreams or because user code decided so.
        Skipped = 10, "SKIPPED";
        /// Stopped on request.
        Cancelled = 11, "CANCELLED";
    }
}

causes! {
    /// An event in the life of a task. Events of an attempt count only while it is the task's
    /// active attempt. The fold decides whether a retry is left and whether the attempt is being
    /// cancelled before it chooses the cause.
    TaskCause {
        /// The run begins.
        RunStarted <- [PlanCreated];
        /// The task it is mapped over succeeded and listed an item: a child is created.
        ItemMapped <- [TaskFinished];
        /// The last upstream succeeded, or there is none.
        UpstreamsSucceeded <- [PlanCreated, TaskFinished];
        /// An upstream failed or was skipped.
        UpstreamNotSucceeded <- [TaskFinished, TimerFired];
        /// All upstreams ended, one was cancelled, none failed or was skipped.
        UpstreamCancelled <- [TaskFinished, TaskForceCancelled];
        /// All upstreams succeeded, at least one of them with a quarantined output and no good
        /// version before it.
        UpstreamQuarantined <- [TaskFinished];
        /// All upstreams succeeded and the output is newer than everything it is made from.
        UpToDate <- [PlanCreated, TaskFinished];
        /// All children succeeded, or there was no item.
        ChildrenSucceeded <- [TaskFinished];
        /// All children succeeded, at least one of them without a readable output.
        ChildWithheld <- [TaskFinished];
        /// All children ended and one failed.
        ChildFailed <- [TaskFinished, TimerFired];
        /// All children ended, none failed or was cancelled, and one was skipped.
        ChildSkipped <- [TaskFinished];
        /// All children ended, none failed and one was cancelled.
        ChildCancelled <- [TaskFinished, TaskForceCancelled];
        /// The dispatcher claimed it for a worker or the queue.
        Claimed <- [DispatchRequested];
        /// The push queue accepted the envelope.
        Enqueued <- [DispatchEnqueued];
        /// User code began.
        Started <- [TaskStarted];
        /// User code succeeded; readers get its output, or keep an earlier one while it is
        /// quarantined.
        Succeeded <- [TaskFinished];
        /// User code succeeded; its output is quarantined and there is no good version before it.
        SucceededWithheld <- [TaskFinished];
        /// User code reported that there is nothing to do.
        SkippedItself <- [TaskFinished];
        /// The attempt failed and another one is allowed.
        FailedWithRetry <- [TaskFinished];
        /// The attempt failed and no other one is allowed.
        FailedForGood <- [TaskFinished];
        /// A blocking check failed and there is no quarantine.
        CheckFailed <- [TaskFinished];
        /// The worker had to stop and gave the attempt back.
        Interrupted <- [TaskFinished];
        /// The execution timeout passed and another attempt is allowed.
        TimedOutWithRetry <- [TimerFired, TaskFinished];
        /// The execution timeout passed and no other attempt is allowed.
        TimedOutForGood <- [TimerFired, TaskFinished];
        /// The worker stopped sending heartbeats and another attempt is allowed.
        LostWithRetry <- [TimerFired];
        /// The worker stopped sending heartbeats and no other attempt is allowed.
        LostForGood <- [TimerFired];
        /// The ack deadline passed without a start: the task gets a new attempt number, and no
        /// failure is counted.
        NotPickedUp <- [TimerFired];
        /// The next attempt is due.
        RetryDue <- [TimerFired];
        /// The run is cancelled. A task with an attempt in flight keeps it as cancelling.
        RunCancelled <- [RunCancelRequested];
        /// The run exceeded its maximum duration. A task with an attempt in flight keeps it as
        /// cancelling.
        RunTimedOut <- [TimerFired];
        /// The cancelling attempt reported that it has stopped.
        CancelConfirmed <- [TaskFinished];
        /// The cancelling attempt missed its ack, heartbeat or execution deadline.
        CancelUnanswered <- [TimerFired];
        /// The cancelling attempt reported a result instead of stopping.
        FinishedAfterCancel <- [TaskFinished];
        /// A user ended an attempt that has sent no heartbeat for a long time.
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
        // Not SKIPPED, because that would also skip downstream tasks, which may have work to do.
        [Blocked] UpToDate => Succeeded, UpToDate;
        [Blocked] ChildrenSucceeded => Succeeded, ChildrenEnded;
        [Blocked] ChildWithheld => Succeeded, OutputWithheld;
        [Blocked] ChildFailed => Failed, ChildrenEnded;
        [Blocked] ChildSkipped => Skipped, ChildrenEnded;
        [Blocked] ChildCancelled => Cancelled, ChildrenEnded;

        [Ready] Claimed => Queued, EnqueuedForDispatch;
        [Queued] Enqueued => Dispatched, DispatchedToWorker;
        [Queued, Dispatched] NotPickedUp => Ready, DispatchAckTimeout;
        // From QUEUED as well, because the worker may start before the queue's acceptance is
        // folded.
        [Queued, Dispatched] Started => Running, ExecutionStarted;

        // The outcome may also arrive before the start.
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
        // The task has failed before, and its next attempt will not happen.
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
    /// Whether an attempt is active: claimed and not ended.
    pub const fn has_attempt(self) -> bool {
        matches!(
            self,
            TaskState::Queued | TaskState::Dispatched | TaskState::Running
        )
    }
}
