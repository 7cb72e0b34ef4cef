//! Decisions of the queue: what a task may look like, when the next try is, when to look again.

mod check;
mod pace;
mod retry;

pub use check::URL_BYTES_MAX;
pub(crate) use check::check;
pub(crate) use pace::{Looked, next_look};
pub use retry::{Retry, delay_of};
