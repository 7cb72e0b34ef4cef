//! Why a task or a run changed its state.

use crate::coded_enum::coded_enum;

coded_enum! {
    /// Recorded with every transition. The order in which racing causes are folded must not be
    /// visible, so causes that may race without conflicting share a reason.
    TransitionReason {
        /// The run began; the task waits for its upstreams.
        RunStarted = 1, "RUN_STARTED";
        /// Every upstream task succeeded.
        DependenciesSatisfied = 2, "DEPENDENCIES_SATISFIED";
        /// The dispatcher claimed it.
        EnqueuedForDispatch = 3, "ENQUEUED_FOR_DISPATCH";
        /// The push queue accepted the envelope.
        DispatchedToWorker = 4, "DISPATCHED_TO_WORKER";
        /// User code began.
        ExecutionStarted = 5, "EXECUTION_STARTED";
        /// User code succeeded.
        ExecutionSucceeded = 6, "EXECUTION_SUCCEEDED";
        /// The attempt failed and no retry is left.
        ExecutionFailed = 7, "EXECUTION_FAILED";
        /// The attempt ran longer than its asset allows.
        TimedOut = 8, "TIMED_OUT";
        /// The worker sent nothing for the heartbeat timeout.
        HeartbeatTimeout = 9, "HEARTBEAT_TIMEOUT";
        /// No worker started the attempt in time; this is not a failure.
        DispatchAckTimeout = 10, "DISPATCH_ACK_TIMEOUT";
        /// The attempt failed and is repeated after a delay.
        RetryScheduled = 11, "RETRY_SCHEDULED";
        /// The delay before the next attempt is over.
        RetryTimerExpired = 12, "RETRY_TIMER_EXPIRED";
        /// The worker had to stop and gave the attempt back; this is not a failure.
        Interrupted = 13, "INTERRUPTED";
        /// A user cancelled the run.
        UserCancelled = 14, "USER_CANCELLED";
        /// Servo cancelled the run, because a backfill was cancelled or a tenant suspended.
        SystemCancelled = 15, "SYSTEM_CANCELLED";
        /// The run is being cancelled, and so was the task.
        RunCancelled = 16, "RUN_CANCELLED";
        /// An upstream task was cancelled and none failed or was skipped.
        UpstreamCancelled = 17, "UPSTREAM_CANCELLED";
        /// A user ended an attempt that no longer responds.
        ForceCancelled = 18, "FORCE_CANCELLED";
        /// A result arrived after the cancel; it is kept and promotes nothing.
        LateResult = 19, "LATE_RESULT";
        /// An upstream task failed or was skipped.
        UpstreamNotSucceeded = 20, "UPSTREAM_NOT_SUCCEEDED";
        /// An upstream's output is quarantined and there is no good version before it.
        UpstreamQuarantined = 22, "UPSTREAM_QUARANTINED";
        /// User code decided that there was nothing to do.
        SkippedByUserCode = 23, "SKIPPED_BY_USER_CODE";
        /// The output is up to date; downstream tasks read it unchanged.
        UpToDate = 24, "UP_TO_DATE";
        /// A blocking check failed and the asset has no quarantine.
        CheckFailed = 25, "CHECK_FAILED";
        /// The result of the task that it is mapped over listed its item.
        Mapped = 26, "MAPPED";
        /// All children of the mapped parent ended.
        ChildrenEnded = 27, "CHILDREN_ENDED";
        /// The run is being cancelled; the attempt still has to confirm it.
        CancelRequested = 28, "CANCEL_REQUESTED";
        /// User code succeeded, but its output is quarantined and there is no good version before
        /// it.
        OutputWithheld = 29, "OUTPUT_WITHHELD";
        /// The run was accepted and its tasks were planned: the reason in a new row, before any
        /// transition.
        RunCreated = 40, "RUN_CREATED";
        /// The run could not be planned.
        PlanFailed = 41, "PLAN_FAILED";
        /// Every task ended, and none failed or was cancelled.
        AllTasksSucceeded = 42, "ALL_TASKS_SUCCEEDED";
        /// No task can make progress and at least one failed.
        TasksFailed = 43, "TASKS_FAILED";
        /// The run exceeded its maximum duration.
        RunTimedOut = 44, "RUN_TIMED_OUT";
        /// A user paused the run.
        Paused = 45, "PAUSED";
        /// A user resumed the run.
        Resumed = 46, "RESUMED";
        /// No task can make progress, none failed and at least one was cancelled.
        TasksCancelled = 47, "TASKS_CANCELLED";
    }
}

impl TransitionReason {
    /// The reason in the row of a run or task that has not changed yet.
    pub const CREATED: TransitionReason = TransitionReason::RunCreated;
}
