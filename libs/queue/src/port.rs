//! What a queue does for whoever hands it work.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use servo_store::{StoreError, Timestamp};

use crate::core::Retry;

/// A queue of tasks.
pub trait TaskQueue: Send + Sync + 'static {
    /// Takes tasks, and answers for each in order. A name that the queue knows, waiting or gone for less than an hour,
    /// is a success that changes nothing: who did not hear the answer asks again. All are taken, or none.
    fn create(
        &self,
        tasks: &[NewTask],
    ) -> impl Future<Output = Result<Vec<Created>, QueueError>> + Send;

    /// Drops tasks that nobody has taken; answers how many. Their names stay known. A push that is under way ends by
    /// itself and is not repeated.
    fn delete(
        &self,
        queue: &str,
        names: &[String],
    ) -> impl Future<Output = Result<u64, QueueError>> + Send;

    /// Stops pushing, or goes on. Tasks are taken all the same.
    fn pause(
        &self,
        queue: &str,
        paused: bool,
    ) -> impl Future<Output = Result<(), QueueError>> + Send;
}

/// Work for a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    pub queue: Arc<str>,
    /// Known to the queue until an hour after its end.
    pub name: String,
    /// Whose it is.
    pub tenant: String,
    /// Where it is pushed to.
    pub url: String,
    pub body: Bytes,
    /// Not pushed before; at once without.
    pub not_before: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    New,
    AlreadyExists,
}

/// How a queue pushes.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueSettings {
    pub name: Arc<str>,
    /// Pushes in a second, of all pushers together.
    pub max_per_second: f64,
    /// Pushes under way, of all pushers together.
    pub max_concurrent: u32,
    pub retry: Retry,
}

impl QueueSettings {
    /// With the rate of one queue of Cloud Tasks.
    pub fn new(name: impl Into<Arc<str>>) -> QueueSettings {
        QueueSettings {
            name: name.into(),
            max_per_second: 500.0,
            max_concurrent: 100,
            retry: Retry::default(),
        }
    }

    /// What may be pushed at once after a quiet time.
    pub(crate) fn burst(&self) -> f64 {
        self.max_per_second.max(1.0)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error("there is no queue `{0}`; create it before it is used")]
    NoSuchQueue(String),
    #[error("task `{name}`: {field} {fault}")]
    BadTask {
        name: String,
        field: &'static str,
        fault: String,
    },
    #[error("queue `{0}`: {1}")]
    BadSettings(String, &'static str),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueueError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, QueueError::Store(error) if error.is_transient())
    }
}
