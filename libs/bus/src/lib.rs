//! The event bus: what happened to runs, told to whoever follows from afar.
//!
//! [`EventBus`] is the port, shaped after Pub/Sub: topics, subscriptions, an ordering key, attributes as CloudEvents,
//! at least once. [`PostgresBus`] is the adapter without further parts: messages are rows that the folding statement
//! writes, cursors stand beside them. [`consume`] repeats receive, digest, settle.
//!
//! A message that cannot be digested is tried again with growing delays while the others flow; after
//! [`TRIES_MAX`](core::TRIES_MAX) tries it is set aside until somebody replays it.
//!
//! **Stays absent:** correctness that rests on the order of messages, or on their coming soon: whoever listens also looks
//! by itself.

mod consume;
pub mod core;
mod port;
mod postgres;

pub use consume::consume;
pub use port::{
    Attributes, Batch, BusError, EventBus, Message, Subscription, Topic, Verdict, Version,
};
pub use postgres::{Listeners, PostgresBus, expire, replay, ring};
