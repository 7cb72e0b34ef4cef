//! The state machines as data: which cause leads from which state to which, and the recorded
//! reason.
//!
//! The tables are complete. A cause without a row for the current state changes nothing; that makes
//! terminal states final, and late, repeated and overtaken events harmless. Folds look transitions
//! up here, `docs/states.md` is generated from here, and tests check the properties that every
//! table must have.

mod backfill;
mod materialization;
mod queue_entry;
mod reason;
mod run;
mod task;

pub use backfill::{BackfillReason, BackfillState};
pub use materialization::{MaterializationReason, MaterializationState};
pub use queue_entry::{QueueEntryReason, QueueEntryState};
pub use reason::TransitionReason;
pub use run::{RunCause, RunState};
pub use task::{TaskCause, TaskState};

use crate::coded_enum::DocumentedEnum;
use crate::event::EventType;

/// A state with its transition table.
pub trait Machine: DocumentedEnum {
    /// The event that happened, as finely as the next state depends on it.
    type Cause: DocumentedEnum;
    /// The recorded reason, as rows and people see it. In the small machines the cause itself.
    type Reason: DocumentedEnum;

    const NAME: &'static str;
    const INITIAL: Self;
    const TABLE: &'static [Transition<Self>];

    fn is_terminal(self) -> bool;

    /// The ledger events that may carry this cause; empty when it follows from other states or
    /// never leaves a service.
    fn events(cause: Self::Cause) -> &'static [EventType];

    /// The next state and the reason for it, or `None` when the cause changes nothing here.
    fn on(self, cause: Self::Cause) -> Option<(Self, Self::Reason)> {
        let row = Self::TABLE
            .iter()
            .find(|row| row.from == self && row.cause == cause)?;
        Some((row.to, row.reason))
    }
}

/// One row of a table.
#[derive(Debug)]
pub struct Transition<S: Machine> {
    pub from: S,
    pub cause: S::Cause,
    pub to: S,
    pub reason: S::Reason,
}

/// `[From, …] Cause => To, Reason;`, one row for each state in the brackets.
macro_rules! transitions {
    ($state:ident, $cause:ident, $reason:ident:
     $([$($from:ident),+] $on:ident => $to:ident, $why:ident;)+) => {
        &[$($(crate::states::Transition {
            from: $state::$from,
            cause: $cause::$on,
            to: $state::$to,
            reason: $reason::$why,
        }),+),+]
    };
}
use transitions;

/// Defines a list of causes, each with the ledger events that may carry it.
macro_rules! causes {
    ($(#[$attr:meta])* $list:ident { $($(#[doc = $about:literal])+ $item:ident <- [$($event:ident),*];)+ }) => {
        $(#[$attr])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $list { $($(#[doc = $about])+ $item),+ }

        impl $list {
            pub const ALL: &'static [$list] = &[$($list::$item),+];

            const fn events(self) -> &'static [crate::event::EventType] {
                match self { $($list::$item => &[$(crate::event::EventType::$event),*]),+ }
            }
        }

        impl crate::coded_enum::DocumentedEnum for $list {
            const VARIANTS: &'static [$list] = $list::ALL;

            fn description(self) -> &'static str {
                match self { $($list::$item => concat!($($about),+)),+ }.trim()
            }
        }

        impl std::fmt::Display for $list {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self, f)
            }
        }
    };
}
use causes;
