//! The values everybody speaks about: ids, canonical forms, graph, plan, states, retry delays.
//!
//! Pure: no IO, no clock, no randomness, no prost. What stands here is spoken by more than one service.

pub mod event;
pub mod hash;
pub mod json;
pub mod limits;
pub mod service;

pub use event::{EventType, Stream};
pub use hash::Digest;
pub use service::Service;
