//! The doorbell for runs that wait for a place: a run that ends anywhere may have left one.
//!
//! An instance listens only while runs wait there, and rings only for tenants with a limit. A lost ring costs a look.

use std::sync::Arc;
use std::time::Duration;

use servo_store::{Listener, LoopStore, Store, query};
use tokio::sync::{Notify, mpsc};

use super::lane::Message;

const CHANNEL: &str = "servo_scheduler_room";
/// Runs that end within this time ring once.
const GATHER: Duration = Duration::from_millis(20);
/// Every loop also looks by itself.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct RunCapacity {
    left: Arc<Notify>,
    wanted: Arc<Notify>,
}

impl RunCapacity {
    /// Rings and listens for these lanes, as long as they live.
    pub(super) fn start(&self, store: &Store, lanes: &[mpsc::UnboundedSender<Message>]) {
        let lanes = lanes.iter().map(mpsc::UnboundedSender::downgrade).collect();
        tokio::spawn(ring(self.left.clone(), store.loops().clone()));
        tokio::spawn(listen(self.wanted.clone(), store.clone(), lanes));
    }

    /// A run of a tenant with a limit has ended.
    pub(super) fn left(&self) {
        self.left.notify_one();
    }

    /// Runs wait here.
    pub(super) fn wanted(&self) {
        self.wanted.notify_one();
    }
}

async fn ring(left: Arc<Notify>, loops: LoopStore) {
    loop {
        left.notified().await;
        if let Err(error) = loops
            .execute(query("SELECT pg_notify($1, '')").bind(CHANNEL))
            .await
        {
            tracing::debug!(%error, "nobody was told that a run left its place; instances look by themselves");
        }
        tokio::time::sleep(GATHER).await;
    }
}

async fn listen(wanted: Arc<Notify>, store: Store, lanes: Vec<mpsc::WeakUnboundedSender<Message>>) {
    loop {
        wanted.notified().await;
        let mut listener = store.listen(CHANNEL).await.ok();
        // What was rung before is found by a look. Lanes in which runs still wait say so again.
        while tell(&lanes) {
            if tokio::time::timeout(LOOK_EVERY, wanted.notified())
                .await
                .is_err()
            {
                break;
            }
            if let Err(error) = heard(&mut listener).await {
                tracing::debug!(
                    error,
                    "rings may have been lost; the instance looks by itself"
                );
                listener = store.listen(CHANNEL).await.ok();
            }
        }
        if lanes.iter().all(|lane| lane.upgrade().is_none()) {
            return;
        }
    }
}

/// Waits for a ring, or for the time to look without one.
async fn heard(listener: &mut Option<Listener>) -> Result<(), String> {
    let Some(listening) = listener else {
        tokio::time::sleep(LOOK_EVERY).await;
        return Err("nobody listens".to_owned());
    };
    match tokio::time::timeout(LOOK_EVERY, listening.heard()).await {
        Ok(heard) => heard.map_err(|error| error.to_string()),
        Err(_) => Ok(()),
    }
}

/// Answers whether anybody is there to be told.
fn tell(lanes: &[mpsc::WeakUnboundedSender<Message>]) -> bool {
    let message = lanes.iter().filter_map(mpsc::WeakUnboundedSender::upgrade);
    message
        .filter(|lane| lane.send(Message::RunCapacity).is_ok())
        .count()
        > 0
}
