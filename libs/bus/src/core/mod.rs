//! Decisions of the bus: when a message is retried, how far a cursor advances, and which messages
//! are newer than those seen.

mod inbox;
mod settle;

pub use inbox::Inbox;
pub use settle::{FailedMessage, Settled, TRIES_MAX, settle};
