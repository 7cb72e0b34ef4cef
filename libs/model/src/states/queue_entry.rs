//! An envelope on its way through the push queue. These rows belong to the dispatcher; no ledger
//! event is folded into them.

use super::{Machine, Transition, transitions};
use crate::coded_enum::coded_enum;
use crate::event::EventType;

coded_enum! {
    QueueEntryState {
        /// Recorded; the queue has not accepted it yet.
        Pending = 1, "PENDING";
        /// The queue has accepted it.
        Created = 2, "CREATED";
        /// A worker started the attempt.
        Acked = 3, "ACKED";
        /// The queue refused it or gave up delivering it.
        Failed = 4, "FAILED";
        /// Dropped before a worker started it.
        Cancelled = 5, "CANCELLED";
    }
}

coded_enum! {
    /// Why an entry changed its state.
    QueueEntryReason {
        /// The queue accepted it, now or on an earlier try.
        Accepted = 1, "ACCEPTED";
        /// The attempt was started.
        Started = 2, "STARTED";
        /// The queue refused it or gave up.
        DeliveryFailed = 3, "DELIVERY_FAILED";
        /// The attempt is being cancelled, or another one replaced it.
        Dropped = 4, "DROPPED";
    }
}

impl Machine for QueueEntryState {
    type Cause = QueueEntryReason;
    type Reason = QueueEntryReason;

    const NAME: &'static str = "Queue entry";
    const INITIAL: QueueEntryState = QueueEntryState::Pending;
    const TABLE: &'static [Transition<QueueEntryState>] = transitions! {
        QueueEntryState, QueueEntryReason, QueueEntryReason:
        [Pending] Accepted => Created, Accepted;
        // From PENDING as well, because the worker may start before the queue's response arrives.
        [Pending, Created] Started => Acked, Started;
        [Pending, Created] DeliveryFailed => Failed, DeliveryFailed;
        [Pending, Created] Dropped => Cancelled, Dropped;
    };

    fn is_terminal(self) -> bool {
        matches!(
            self,
            QueueEntryState::Acked | QueueEntryState::Failed | QueueEntryState::Cancelled
        )
    }

    fn events(_: QueueEntryReason) -> &'static [EventType] {
        &[]
    }
}
