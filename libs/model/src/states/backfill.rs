//! A backfill: one run per chunk, and a new version with every change.

use super::{Machine, Transition, transitions};
use crate::coded_enum::coded_enum;
use crate::event::EventType;

coded_enum! {
    BackfillState {
        /// Accepted; no chunk has been created yet.
        Pending = 1, "PENDING";
        /// Creates chunks and waits for their runs.
        Running = 2, "RUNNING";
        /// Creates no chunks; runs in progress continue, and their failures do not fail it.
        Paused = 3, "PAUSED";
        /// Every chunk ended and not too much failed.
        Succeeded = 4, "SUCCEEDED";
        /// Too much failed.
        Failed = 5, "FAILED";
        /// Stopped on request.
        Cancelled = 6, "CANCELLED";
    }
}

coded_enum! {
    /// Why a backfill changed its state.
    BackfillReason {
        /// Its first chunk was created.
        Started = 1, "STARTED";
        /// Every chunk ended and not too much failed.
        AllChunksEnded = 2, "ALL_CHUNKS_ENDED";
        /// A failure threshold was passed.
        ThresholdPassed = 3, "THRESHOLD_PASSED";
        /// A user paused it.
        Paused = 4, "PAUSED";
        /// A user resumed it.
        Resumed = 5, "RESUMED";
        /// A user cancelled it.
        Cancelled = 6, "CANCELLED";
        /// Its chunks cannot be planned.
        PlanFailed = 7, "PLAN_FAILED";
    }
}

impl Machine for BackfillState {
    type Cause = BackfillReason;
    type Reason = BackfillReason;

    const NAME: &'static str = "Backfill";
    const INITIAL: BackfillState = BackfillState::Pending;
    const TABLE: &'static [Transition<BackfillState>] = transitions! { BackfillState, BackfillReason, BackfillReason:
        [Pending] Started => Running, Started;
        [Running] Paused => Paused, Paused;
        [Paused] Resumed => Running, Resumed;
        [Running, Paused] AllChunksEnded => Succeeded, AllChunksEnded;
        // Not while paused, because the user who paused it may be repairing what failed. The
        // threshold is checked again on resume.
        [Running] ThresholdPassed => Failed, ThresholdPassed;
        [Pending, Running] PlanFailed => Failed, PlanFailed;
        [Pending, Running, Paused] Cancelled => Cancelled, Cancelled;
    };

    fn is_terminal(self) -> bool {
        matches!(
            self,
            BackfillState::Succeeded | BackfillState::Failed | BackfillState::Cancelled
        )
    }

    fn events(_: BackfillReason) -> &'static [EventType] {
        &[EventType::BackfillStateChanged]
    }
}
