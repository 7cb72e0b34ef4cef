//! The output of an attempt, from its first file to the version that readers get.

use super::{Machine, Transition, transitions};
use crate::coded_enum::coded_enum;
use crate::event::EventType;

coded_enum! {
    MaterializationState {
        /// Files are being written; nothing is guaranteed.
        Staged = 1, "STAGED";
        /// The commit marker exists. The output of an attempt that finished too late stays in this
        /// state.
        Committed = 2, "COMMITTED";
        /// Readers may get this version.
        Promoted = 3, "PROMOTED";
        /// A blocking check failed; readers keep the previous version until a user decides.
        Quarantined = 4, "QUARANTINED";
        /// A user rejected it.
        Rejected = 5, "REJECTED";
    }
}

coded_enum! {
    /// Why an output changed its state.
    MaterializationReason {
        /// The callback service found the commit marker.
        MarkerFound = 1, "MARKER_FOUND";
        /// The success of its attempt was folded.
        AttemptSucceeded = 2, "ATTEMPT_SUCCEEDED";
        /// The attempt succeeded, but a blocking check did not pass.
        CheckFailed = 3, "CHECK_FAILED";
        /// A user reviewed it and approved it.
        Approved = 4, "APPROVED";
        /// A user reviewed it and rejected it.
        Rejected = 5, "REJECTED";
    }
}

impl Machine for MaterializationState {
    type Cause = MaterializationReason;
    type Reason = MaterializationReason;

    const NAME: &'static str = "Materialization";
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
