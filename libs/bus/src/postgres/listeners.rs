//! The publisher's side of the doorbell: one ring for all that was published meanwhile, and none when nobody listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use servo_store::{LoopStore, StoreError};
use tokio::sync::Notify;

use super::statements;
use crate::port::Topic;

/// What is published within this time rings once.
const GATHER: Duration = Duration::from_millis(20);

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Listeners {
    topic: Topic,
    there: Arc<AtomicBool>,
    news: Arc<Notify>,
}

impl Listeners {
    /// Starts ringing for what is told to it.
    pub fn start(loops: LoopStore, topic: Topic) -> Listeners {
        let listeners = Listeners {
            topic,
            there: Arc::default(),
            news: Arc::default(),
        };
        tokio::spawn(ring(listeners.news.clone(), loops, topic));
        listeners
    }

    /// Something was published and committed.
    pub fn tell(&self) {
        if self.there.load(Ordering::Acquire) {
            self.news.notify_one();
        }
    }

    /// Looks whether anybody listens. Who subscribes meanwhile finds by itself what was not rung for.
    pub async fn look(&self, loops: &LoopStore) -> Result<(), StoreError> {
        self.there.store(
            statements::is_listened_to(loops, self.topic).await?,
            Ordering::Release,
        );
        Ok(())
    }
}

async fn ring(news: Arc<Notify>, loops: LoopStore, topic: Topic) {
    loop {
        news.notified().await;
        if let Err(error) = statements::ring(&loops, topic).await {
            tracing::debug!(%error, "nobody was rung; consumers look by themselves");
        }
        tokio::time::sleep(GATHER).await;
    }
}
