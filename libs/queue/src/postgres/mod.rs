//! The queue in Postgres, in the dispatcher's schema.

mod connect;
mod pusher;
mod send;
mod settle;
mod statements;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use servo_store::Store;
use tokio::sync::Notify;

use crate::core::check;
use crate::port::{Created, NewEntry, QueueError, QueueSettings, TaskQueue};

pub use connect::ClientTls;
pub use pusher::Pusher;

/// The channel on which new work is announced, also to pushers in other processes.
const CHANNEL: &str = "servo_queue";

/// The tasks of one queue by state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCounts {
    pub queue: String,
    pub waiting: i64,
    pub pushing: i64,
}

/// Queues that several processes share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PostgresQueue {
    store: Store,
    settings: Arc<BTreeMap<Arc<str>, QueueSettings>>,
    /// Wakes the pusher of this process.
    doorbell: Arc<Notify>,
}

impl PostgresQueue {
    /// Checks the settings; [`PostgresQueue::ensure`] creates the queues.
    pub fn new(
        store: Store,
        queues: impl IntoIterator<Item = QueueSettings>,
    ) -> Result<PostgresQueue, QueueError> {
        let mut settings = BTreeMap::new();
        for queue in queues {
            let bad = |fault| Err(QueueError::BadSettings(queue.name.to_string(), fault));
            if queue.name.is_empty() {
                return bad("has no name");
            }
            if !(queue.max_per_second.is_finite() && queue.max_per_second > 0.0) {
                return bad("max_per_second must be above 0");
            }
            if queue.max_concurrent == 0 || queue.retry.max_attempts == 0 {
                return bad("max_concurrent and max_attempts must be at least 1");
            }
            settings.insert(queue.name.clone(), queue);
        }
        Ok(PostgresQueue {
            store,
            settings: Arc::new(settings),
            doorbell: Arc::default(),
        })
    }

    /// Creates the queues that do not exist yet.
    pub async fn ensure(&self) -> Result<(), QueueError> {
        Ok(statements::ensure_queues(self.store.loops(), self.settings.values()).await?)
    }

    /// How many tasks are waiting and how many are being pushed, per queue.
    pub async fn counts(&self) -> Result<Vec<QueueCounts>, QueueError> {
        Ok(statements::counts(self.store.loops()).await?)
    }

    fn check_exists(&self, queue: &str) -> Result<(), QueueError> {
        if self.settings.contains_key(queue) {
            Ok(())
        } else {
            Err(QueueError::NoSuchQueue(queue.to_owned()))
        }
    }
}

impl TaskQueue for PostgresQueue {
    async fn create(&self, entries: &[NewEntry]) -> Result<Vec<Created>, QueueError> {
        for entry in entries {
            self.check_exists(&entry.queue)?;
            check(entry).map_err(|(field, fault)| QueueError::BadTask {
                name: entry.name.clone(),
                field,
                fault,
            })?;
        }
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let created = statements::create(self.store.loops(), entries).await?;
        let mut new: HashSet<(String, String)> = created.into_iter().collect();
        if !new.is_empty() {
            self.doorbell.notify_one();
        }
        // If a name occurs twice in this batch, the first entry counts as new.
        let result = |entry: &NewEntry| {
            if new.remove(&(entry.queue.to_string(), entry.name.clone())) {
                Created::New
            } else {
                Created::AlreadyExists
            }
        };
        Ok(entries.iter().map(result).collect())
    }

    async fn delete(&self, queue: &str, names: &[String]) -> Result<u64, QueueError> {
        self.check_exists(queue)?;
        Ok(statements::delete(self.store.loops(), queue, names).await?)
    }

    async fn pause(&self, queue: &str, paused: bool) -> Result<(), QueueError> {
        self.check_exists(queue)?;
        statements::pause(self.store.loops(), queue, paused).await?;
        self.doorbell.notify_one();
        Ok(())
    }
}
