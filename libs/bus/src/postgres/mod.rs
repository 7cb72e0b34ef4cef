//! The bus in Postgres: messages and cursors are rows, and a doorbell avoids frequent polling.

mod doorbell;
mod statements;

use std::sync::Arc;
use std::time::Duration;

use servo_model::{Position, ShardId, TenantId, Timestamp};
use servo_store::{Listener, Store, StoreError};
use tokio::sync::Mutex;
use uuid::Uuid;

pub use doorbell::BusDoorbell;
pub use statements::{expire, replay, ring};

use crate::core;
use crate::port::{
    Acknowledgement, Batch, BusError, EventBus, Message, Subscription, Topic, Version,
};

/// The channel that consumers listen on; the payload is the name of the topic.
pub(crate) const CHANNEL: &str = "servo_bus";
/// How often a consumer polls without having received a notification.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// How long a batch belongs to its consumer.
const LEASE: Duration = Duration::from_secs(30);
/// The limit per shard, and for the messages that are due for another try.
const MESSAGES_PER_CLAIM: i32 = 64;

/// One consumer. The subscriptions that it reads share its doorbell.
pub struct PostgresBus {
    store: Store,
    /// Identifies this process among the consumers of a subscription.
    holder: Arc<str>,
    poll_interval: Duration,
    lease: Duration,
    doorbell: Mutex<Option<Listener>>,
}

impl PostgresBus {
    pub fn new(store: &Store, holder: &str) -> PostgresBus {
        let doorbell = Mutex::new(None);
        PostgresBus {
            store: store.clone(),
            holder: holder.into(),
            poll_interval: POLL_INTERVAL,
            lease: LEASE,
            doorbell,
        }
    }

    /// Changes the poll interval and the lease, for tests.
    #[must_use]
    pub fn with_intervals(self, poll_interval: Duration, lease: Duration) -> PostgresBus {
        PostgresBus {
            poll_interval,
            lease,
            ..self
        }
    }

    async fn claim(&self, subscription: &Subscription) -> Result<Batch, StoreError> {
        let loops = self.store.loops();
        let rows = statements::claim(
            loops,
            subscription,
            &self.holder,
            self.lease,
            MESSAGES_PER_CLAIM,
        )
        .await?;
        Ok(Batch {
            messages: rows
                .into_iter()
                .map(|row| message(subscription.topic, row))
                .collect(),
        })
    }

    /// Waits for the doorbell, for the next due message, or for the poll interval.
    async fn wait(
        &self,
        subscription: &Subscription,
        doorbell: &mut Option<Listener>,
    ) -> Result<(), StoreError> {
        let due = statements::next_due(self.store.loops(), subscription).await?;
        let pause = due.map_or(self.poll_interval, |due| due.min(self.poll_interval));
        let Some(listener) = doorbell else {
            return Ok(());
        };
        match tokio::time::timeout(pause, listener.notified()).await {
            Ok(Err(error)) => {
                *doorbell = None;
                Err(error)
            }
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }
}

impl EventBus for PostgresBus {
    async fn subscribe(&self, subscription: &Subscription) -> Result<(), BusError> {
        let service = self.store.service().name();
        if subscription.name.split('.').next() != Some(service) {
            return Err(BusError::BadSubscription(subscription.name.clone()));
        }
        Ok(statements::subscribe(self.store.loops(), subscription).await?)
    }

    async fn receive(&self, subscription: &Subscription) -> Result<Batch, BusError> {
        let mut doorbell = self.doorbell.lock().await;
        // Listens before claiming, so that messages published in between ring the doorbell.
        if doorbell.is_none() {
            *doorbell = Some(self.store.listen(CHANNEL).await?);
        }
        let batch = self.claim(subscription).await?;
        if !batch.messages.is_empty() {
            return Ok(batch);
        }
        self.wait(subscription, &mut doorbell).await?;
        Ok(self.claim(subscription).await?)
    }

    async fn settle(
        &self,
        subscription: &Subscription,
        batch: Batch,
        results: Vec<Acknowledgement>,
    ) -> Result<(), BusError> {
        if batch.messages.is_empty() {
            return Ok(());
        }
        let settled = core::settle(&batch.messages, &results);
        Ok(statements::settle(self.store.loops(), subscription, &self.holder, &settled).await?)
    }
}

/// shard, position, place, tries, key, tenant, workspace, published at, payload
type Row = (
    ShardId,
    Position,
    i32,
    i32,
    Uuid,
    TenantId,
    String,
    Timestamp,
    Vec<u8>,
);

fn message(topic: Topic, row: Row) -> Message {
    let (shard, position, place, tries, key, tenant, workspace, published_at, payload) = row;
    let version = Version {
        shard,
        position,
        place,
    };
    Message {
        topic,
        version,
        key,
        tenant,
        workspace,
        published_at,
        tries: tries.unsigned_abs(),
        payload,
    }
}
