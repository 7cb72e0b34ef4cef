//! The publisher's side of the doorbell: one notification for everything published within an
//! interval, and none while there are no subscribers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use servo_store::{LoopStore, StoreError};
use tokio::sync::Notify;

use super::statements;
use crate::port::Topic;

/// Everything published within this interval is announced with one notification.
const RING_INTERVAL: Duration = Duration::from_millis(20);

/// Notifies the consumers of a topic after a publication. Cheap to clone.
#[derive(Debug, Clone)]
pub struct BusDoorbell {
    topic: Topic,
    has_subscribers: Arc<AtomicBool>,
    published: Arc<Notify>,
}

impl BusDoorbell {
    /// Starts the task that sends the notifications.
    pub fn start(loops: LoopStore, topic: Topic) -> BusDoorbell {
        let doorbell = BusDoorbell {
            topic,
            has_subscribers: Arc::default(),
            published: Arc::default(),
        };
        let ring = ring(doorbell.published.clone(), loops, topic);
        servo_actor::spawn("bus doorbell", ring);
        doorbell
    }

    /// Announces that messages were published and committed.
    pub fn ring(&self) {
        if self.has_subscribers.load(Ordering::Acquire) {
            self.published.notify_one();
        }
    }

    /// Refreshes whether the topic has subscribers. A consumer that subscribes between two
    /// refreshes finds its messages by polling.
    pub async fn refresh(&self, loops: &LoopStore) -> Result<(), StoreError> {
        self.has_subscribers.store(
            statements::has_subscribers(loops, self.topic).await?,
            Ordering::Release,
        );
        Ok(())
    }
}

async fn ring(published: Arc<Notify>, loops: LoopStore, topic: Topic) {
    loop {
        published.notified().await;
        if let Err(error) = statements::ring(&loops, topic).await {
            tracing::debug!(%error, "failed to notify consumers; they poll on their own");
        }
        tokio::time::sleep(RING_INTERVAL).await;
    }
}
