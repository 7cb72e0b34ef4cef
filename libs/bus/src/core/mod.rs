//! Decisions of the bus: when a message is tried again, how far a cursor goes, what is new to a consumer.

mod inbox;
mod settle;

pub use inbox::Inbox;
pub use settle::{Parked, Settled, TRIES_MAX, settle};
