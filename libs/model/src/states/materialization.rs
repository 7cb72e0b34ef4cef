//! The output of an attempt, from its first file to the version that readers get.

use super::{Machine, Transition, transitions};
use crate::closed::closed_list;
use crate::event::EventType;

closed_list! {
    MaterializationState {
        /// Files are being written; nothing is promised.
        Staged = 1, "STAGED";
        /// The commit marker exists. The output of an attempt that came too late stays here.
        Committed = 2, "COMMITTED";
        /// Readers may get this version.
        Promoted = 3, "PROMOTED";
        /// A blocking check failed; readers keep the version before it until somebody decides.
        Quarantined = 4, "QUARANTINED";
        /// Somebody decided against it.
        Rejected = 5, "REJECTED";
    }
}

closed_list! {
    /// Why an output changed its state.
    MaterializationReason {
        /// The callback service found the commit marker.
        MarkerFound = 1, "MARKER_FOUND";
        /// The success of its attempt was folded.
        AttemptSucceeded = 2, "ATTEMPT_SUCCEEDED";
        /// The attempt succeeded, but a blocking check did not pass.
        CheckFailed = 3, "CHECK_FAILED";
        /// Somebody looked at it and found it good.
        Approved = 4, "APPROVED";
        /// Somebody looked at it and found it bad.
        Rejected = 5, "REJECTED";
    }
}

impl Machine for MaterializationState {
    type Cause = MaterializationReason;
    type Reason = MaterializationReason;

    const NAME: &'static str = "Materialisation";
    const INITIAL: MaterializationState = MaterializationState::Staged;
    const TABLE: &'static [Transition<MaterializationState>] = transitions! {
        MaterializationState, MaterializationReason, MaterializationReason:
        [Staged] MarkerFound => Committed, MarkerFound;
        [Committed] AttemptSucceeded => Promoted, AttemptSucceeded;
        [Committed] CheckFailed => Quarantined, CheckFailed;
        [Quarantined] Approved => Promoted, Approved;
        [Quarantined] Rejected => Rejected, Rejected;
    };

    fn is_terminal(self) -> bool {
        matches!(
            self,
            MaterializationState::Promoted | MaterializationState::Rejected
        )
    }

    fn events(cause: MaterializationReason) -> &'static [EventType] {
        match cause {
            MaterializationReason::Approved | MaterializationReason::Rejected => {
                &[EventType::QuarantineResolved]
            }
            _ => &[EventType::TaskFinished],
        }
    }
}
