//! Bugs that can be planted, to see that the checks would find them.

/// What is wrong with the world. `None` is how it should be.
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
            Bug::None => "nothing is wrong",
            Bug::AttemptGuardOff => "a result of any attempt counts for the active one",
            Bug::FenceOff => "a flush is stored whoever holds the shard and whatever its marks say",
            Bug::EventSkipped => "an event that others appended is passed over now and then",
            Bug::ClaimNotChecked => "claims of dispatchers that lost their lease count",
            Bug::EarlyTimer => "deadlines of attempts fall before their time",
            Bug::LostCancel => "a cancel is answered and not recorded",
            Bug::NoSweep => "doorbells are lost and nobody looks by himself",
            Bug::FinishFoldedTwice => "a repeated outcome is folded as if it were the first",
            Bug::StaleLeaseAccepted => "a flush under a lease that ran out or moved is stored",
            Bug::SnapshotForgotten => "a stream that is opened again gets no snapshot",
            Bug::SlotFreedTwice => {
                "an attempt gives its slot back when it starts, and again when it ends"
            }
            Bug::RetryWithoutDelay => "a retry does not wait",
            Bug::ShardKeptUnloaded => {
                "a lease is renewed whose shard could not be loaded after an outage"
            }
            Bug::KeyNotCompared => {
                "another request under a run key is answered as if it were the first"
            }
            Bug::RunForgotten => {
                "a run whose event met a taken key is forgotten, and its timers with it"
            }
        }
    }
}
