//! Bugs that can be planted, to verify that the checks find them.

/// A planted bug. `None` is the correct behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    None,
    AttemptGuardOff,
    FenceOff,
    EventSkipped,
    ClaimNotChecked,
    EarlyTimer,
    LostCancel,
    NoSweep,
    FinishFoldedTwice,
    StaleLeaseAccepted,
    SnapshotForgotten,
    SlotFreedTwice,
    RetryWithoutDelay,
    ShardKeptUnloaded,
    RunForgotten,
    KeyNotCompared,
}

impl Bug {
    /// In the order of their numbers, from 1.
    pub const ALL: [Bug; 15] = [
        Bug::AttemptGuardOff,
        Bug::FenceOff,
        Bug::EventSkipped,
        Bug::ClaimNotChecked,
        Bug::EarlyTimer,
        Bug::LostCancel,
        Bug::NoSweep,
        Bug::FinishFoldedTwice,
        Bug::StaleLeaseAccepted,
        Bug::SnapshotForgotten,
        Bug::SlotFreedTwice,
        Bug::RetryWithoutDelay,
        Bug::ShardKeptUnloaded,
        Bug::RunForgotten,
        Bug::KeyNotCompared,
    ];

    /// The bug of this number; 0 is none.
    pub fn numbered(number: usize) -> Option<Bug> {
        match number {
            0 => Some(Bug::None),
            number => Bug::ALL.get(number - 1).copied(),
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Bug::None => "no bug",
            Bug::AttemptGuardOff => "a result of any attempt counts for the active one",
            Bug::FenceOff => "a flush is stored without checking the lease and the watermark",
            Bug::EventSkipped => "some events that others appended are skipped",
            Bug::ClaimNotChecked => "claims of dispatchers that lost their lease are accepted",
            Bug::EarlyTimer => "deadlines of attempts fire early",
            Bug::LostCancel => "a cancel is answered but not recorded",
            Bug::NoSweep => "doorbells are lost and no loop looks periodically",
            Bug::FinishFoldedTwice => "a repeated outcome is folded as if it were the first",
            Bug::StaleLeaseAccepted => "a flush under a lease that expired or moved is stored",
            Bug::SnapshotForgotten => "a reopened stream gets no snapshot",
            Bug::SlotFreedTwice => {
                "an attempt releases its slot when it starts and again when it ends"
            }
            Bug::RetryWithoutDelay => "a retry has no delay",
            Bug::ShardKeptUnloaded => {
                "a lease is renewed although its shard could not be loaded after an outage"
            }
            Bug::KeyNotCompared => {
                "a conflicting request under a run key is answered as if it were the first"
            }
            Bug::RunForgotten => {
                "a run whose event had a taken key is evicted together with its timers"
            }
        }
    }
}
