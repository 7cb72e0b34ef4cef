//! The task queue: named work that is pushed over HTTP until somebody takes it.
//!
//! [`TaskQueue`] is the port, shaped like Google Cloud Tasks: a task has a name that is deduplicated for an hour after
//! its end, a time before which it is not pushed, and a target; a queue has a rate, a bound on pushes at once and a
//! retry policy. [`PostgresQueue`] is the adapter for the embedded default, and its [`Pusher`] does what the cloud's
//! does: it POSTs each task to its target and takes 2xx for "taken".
//!
//! Delivery is at least once. Whoever receives a push answers quickly and does the work afterwards.
//!
//! **Stays absent:** knowledge of what a task's body means, and results: a push that was taken is over.

mod core;
mod port;
mod postgres;

pub use core::{Retry, URL_BYTES_MAX, delay_of};
pub use port::{Created, NewTask, QueueError, QueueSettings, TaskQueue};
pub use postgres::{ClientTls, PostgresQueue, Pusher, QueueCounts};

/// Name of the queue.
pub const QUEUE_HEADER: &str = "servo-queue";
/// Name of the task.
pub const TASK_NAME_HEADER: &str = "servo-task-name";
/// How often it was pushed before.
pub const RETRY_COUNT_HEADER: &str = "servo-retry-count";
