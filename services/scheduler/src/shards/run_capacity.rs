//! The doorbell for runs that wait for capacity: a run that ends anywhere may have freed some.
//!
//! An instance listens only while runs wait on it, and notifies only for tenants with a limit. A
//! lost notification costs latency, because lanes also look periodically.

use std::sync::Arc;
use std::time::Duration;

use servo_store::{Listener, LoopStore, Store};
use tokio::sync::{Notify, mpsc};

use super::lane::Message;
use crate::store::limits::{self, CAPACITY_CHANNEL};

/// Runs that end within this time send one notification.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(20);
/// How often a lane with waiting runs looks without a notification.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct RunCapacity {
    released: Arc<Notify>,
    awaited: Arc<Notify>,
}

impl RunCapacity {
    /// Notifies and listens for these lanes, as long as they live.
    pub(super) fn start(&self, store: &Store, lanes: &[mpsc::Sender<Message>]) {
        let lanes = lanes.iter().map(mpsc::Sender::downgrade).collect();
        let notify = notify(self.released.clone(), store.loops().clone());
        servo_actor::spawn("capacity doorbell", notify);
        let listen = listen(self.awaited.clone(), store.clone(), lanes);
        servo_actor::spawn("capacity listener", listen);
    }

    /// Reports that a run of a tenant with a limit has ended.
    pub(super) fn released(&self) {
        self.released.notify_one();
    }

    /// Reports that runs of this instance wait for capacity.
    pub(super) fn awaited(&self) {
        self.awaited.notify_one();
    }
}

async fn notify(released: Arc<Notify>, loops: LoopStore) {
    loop {
        released.notified().await;
        if let Err(error) = limits::notify_capacity(&loops).await {
            tracing::debug!(%error, "failed to notify instances of free run capacity; they look periodically");
        }
        tokio::time::sleep(NOTIFY_INTERVAL).await;
    }
}

async fn listen(awaited: Arc<Notify>, store: Store, lanes: Vec<mpsc::WeakSender<Message>>) {
    loop {
        awaited.notified().await;
        let mut listener = store.listen(CAPACITY_CHANNEL).await.ok();
        // The first message to the lanes covers notifications from before the listener was open.
        // Lanes in which runs still wait report it again.
        while send_to(&lanes) {
            if tokio::time::timeout(LOOK_EVERY, awaited.notified())
                .await
                .is_err()
            {
                break;
            }
            if let Err(error) = wait_for_notification(&mut listener).await {
                tracing::debug!(
                    error,
                    "capacity notifications may have been lost; the lanes look now"
                );
                listener = store.listen(CAPACITY_CHANNEL).await.ok();
            }
        }
        if lanes.iter().all(|lane| lane.upgrade().is_none()) {
            return;
        }
    }
}

/// Returns after a notification, or when it is time to look without one.
async fn wait_for_notification(listener: &mut Option<Listener>) -> Result<(), String> {
    let Some(listening) = listener else {
        tokio::time::sleep(LOOK_EVERY).await;
        return Err("the listener is not connected".to_owned());
    };
    match tokio::time::timeout(LOOK_EVERY, listening.notified()).await {
        Ok(notified) => notified.map_err(|error| error.to_string()),
        Err(_) => Ok(()),
    }
}

/// Returns whether a lane is still alive. A lane with a full inbox looks again periodically.
fn send_to(lanes: &[mpsc::WeakSender<Message>]) -> bool {
    let alive = lanes.iter().filter_map(mpsc::WeakSender::upgrade);
    alive
        .filter(|lane| {
            let sent = lane.try_send(Message::CapacityChanged);
            !matches!(sent, Err(mpsc::error::TrySendError::Closed(_)))
        })
        .count()
        > 0
}
