//! Decisions of the queue: which tasks are valid, when a push is retried, when to poll again.

mod check;
mod polling;
mod retry;

pub use check::URL_BYTES_MAX;
pub(crate) use check::check;
pub(crate) use polling::{QueueStatus, next_poll};
pub use retry::retry_delay;
