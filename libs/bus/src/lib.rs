//! The event bus: publishes changes of runs to other services.
//!
//! [`EventBus`] is the interface, modelled after Pub/Sub: topics, subscriptions, an ordering key,
//! CloudEvents attributes, at-least-once delivery. [`PostgresBus`] implements it without further
//! infrastructure: messages are rows that the flush statement writes, and cursors are rows as well.
//! [`consume`] repeats receive, handle, settle.
//!
//! A message whose handler fails is retried with growing delays while other messages are delivered;
//! after [`TRIES_MAX`](core::TRIES_MAX) tries it is set aside until an operator replays it.
//!
//! **Stays absent:** correctness that depends on the order or the timeliness of messages. Every
//! consumer also reads the source of truth on its own.

mod consume;
pub mod core;
mod port;
mod postgres;

pub use consume::consume;
pub use port::{
    Acknowledgement, Attributes, Batch, BusError, EventBus, Message, Subscription, Topic, Version,
};
pub use postgres::{BusDoorbell, PostgresBus, expire, replay, ring};
