//! The task queue: named tasks that are pushed over HTTP until their target accepts them.
//!
//! [`TaskQueue`] is the interface, modelled after Google Cloud Tasks: a task has a name that is
//! deduplicated until an hour after its end, a time before which it is not pushed, and a target; a
//! queue has a rate, a limit on concurrent pushes and a retry policy. [`PostgresQueue`] is the
//! embedded default, and its [`Pusher`] does what the cloud service does: it POSTs each task to its
//! target and treats 2xx as accepted.
//!
//! Delivery is at least once. A target responds quickly and does the work afterwards.
//!
//! **Stays absent:** knowledge of the content of a task, and results: an accepted push is finished.

mod core;
mod port;
mod postgres;

pub use core::{URL_BYTES_MAX, retry_delay};
pub use port::{Created, NewEntry, QueueError, QueueSettings, Retry, TaskQueue};
pub use postgres::{ClientTls, PostgresQueue, Pusher, QueueCounts};

/// The header with the name of the queue.
pub const QUEUE_HEADER: &str = "servo-queue";
/// The header with the name of the task.
pub const TASK_NAME_HEADER: &str = "servo-task-name";
/// The header with the number of earlier pushes.
pub const RETRY_COUNT_HEADER: &str = "servo-retry-count";
