//! The interface of a queue.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use servo_model::{TenantId, Timestamp};
use servo_store::StoreError;

pub trait TaskQueue: Send + Sync + 'static {
    /// Adds entries and returns one result for each, in order. A name that the queue still knows is a
    /// success that changes nothing, so a caller that missed the response can repeat the call.
    /// Either all entries are added or none.
    fn create(
        &self,
        entries: &[NewEntry],
    ) -> impl Future<Output = Result<Vec<Created>, QueueError>> + Send;

    /// Drops entries that no target has accepted, and returns their number. Their names stay known. A
    /// push in flight completes and is not repeated.
    fn delete(
        &self,
        queue: &str,
        names: &[String],
    ) -> impl Future<Output = Result<u64, QueueError>> + Send;

    /// Pauses or resumes pushing. Entries can be added in both cases.
    fn pause(
        &self,
        queue: &str,
        paused: bool,
    ) -> impl Future<Output = Result<(), QueueError>> + Send;
}

/// An entry to add to a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    pub queue: Arc<str>,
    /// Known to the queue until an hour after the entry's end.
    pub name: String,
    pub tenant: TenantId,
    /// The address that the entry is pushed to.
    pub url: String,
    pub body: Bytes,
    /// The earliest time of the first push; `None` means immediately.
    pub not_before: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    New,
    AlreadyExists,
}

/// The limits and the retry policy of a queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueSettings {
    pub name: Arc<str>,
    /// Pushes per second, over all pushers.
    pub max_per_second: f64,
    /// Concurrent pushes, over all pushers.
    pub max_concurrent: u32,
    pub retry: Retry,
}

impl QueueSettings {
    /// Uses the default rate of a Cloud Tasks queue.
    pub fn new(name: impl Into<Arc<str>>) -> QueueSettings {
        QueueSettings {
            name: name.into(),
            max_per_second: 500.0,
            max_concurrent: 100,
            retry: Retry::default(),
        }
    }

    /// The number of pushes allowed at once after an idle time.
    pub(crate) fn burst(&self) -> f64 {
        self.max_per_second.max(1.0)
    }
}

/// The retry policy of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// The number of pushes after which an entry fails.
    pub max_attempts: u32,
    pub min_backoff: Duration,
    pub max_backoff: Duration,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            max_attempts: 20,
            min_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(10),
        }
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
