//! The bus in Postgres: rows and cursors, and a doorbell so that nobody polls.

mod listeners;
mod statements;

use std::sync::Arc;
use std::time::Duration;

use servo_store::{Listener, Store, StoreError, Timestamp};
use tokio::sync::Mutex;
use uuid::Uuid;

pub use listeners::Listeners;
pub use statements::{expire, replay, ring};

use crate::core;
use crate::port::{Batch, BusError, EventBus, Message, Subscription, Topic, Verdict, Version};

/// What consumers listen on; the topic's name is what they hear.
pub(crate) const CHANNEL: &str = "servo_bus";
/// How often a consumer looks without having heard anything.
const SWEEP: Duration = Duration::from_secs(30);
/// How long a batch belongs to its consumer.
const LEASE: Duration = Duration::from_secs(30);
/// Of one shard, and of those that are tried again.
const MESSAGES_PER_CLAIM: i32 = 64;

/// One consumer. Subscriptions that it reads share its doorbell.
pub struct PostgresBus {
    store: Store,
    /// Names this process among the consumers of a subscription.
    holder: Arc<str>,
    sweep: Duration,
    lease: Duration,
    bell: Mutex<Option<Listener>>,
}

impl PostgresBus {
    pub fn new(store: &Store, holder: &str) -> PostgresBus {
        let bell = Mutex::new(None);
        PostgresBus {
            store: store.clone(),
            holder: holder.into(),
            sweep: SWEEP,
            lease: LEASE,
            bell,
        }
    }

    /// With another pace, for tests: how often it looks by itself, and how long a dead consumer's messages wait.
    #[must_use]
    pub fn at_pace(self, sweep: Duration, lease: Duration) -> PostgresBus {
        PostgresBus {
            sweep,
            lease,
            ..self
        }
    }

    async fn claim(&self, of: &Subscription) -> Result<Batch, StoreError> {
        let loops = self.store.loops();
        let rows =
            statements::claim(loops, of, &self.holder, self.lease, MESSAGES_PER_CLAIM).await?;
        Ok(Batch {
            messages: rows.into_iter().map(|row| message(of.topic, row)).collect(),
        })
    }

    /// Until the bell rings, a message is to be tried again, or it is time to look.
    async fn wait(&self, of: &Subscription, bell: &mut Option<Listener>) -> Result<(), StoreError> {
        let due = statements::next_due(self.store.loops(), of).await?;
        let pause = due.map_or(self.sweep, |due| due.min(self.sweep));
        let Some(listener) = bell else { return Ok(()) };
        match tokio::time::timeout(pause, listener.heard()).await {
            Ok(Err(error)) => {
                *bell = None;
                Err(error)
            }
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }
}

impl EventBus for PostgresBus {
    async fn subscribe(&self, to: &Subscription) -> Result<(), BusError> {
        let service = self.store.service().name();
        if to.name.split('.').next() != Some(service) {
            return Err(BusError::BadSubscription(to.name.clone()));
        }
        Ok(statements::subscribe(self.store.loops(), to).await?)
    }

    async fn receive(&self, of: &Subscription) -> Result<Batch, BusError> {
        let mut bell = self.bell.lock().await;
        // Listening first: what is published while we look is heard afterwards.
        if bell.is_none() {
            *bell = Some(self.store.listen(CHANNEL).await?);
        }
        let batch = self.claim(of).await?;
        if !batch.messages.is_empty() {
            return Ok(batch);
        }
        self.wait(of, &mut bell).await?;
        Ok(self.claim(of).await?)
    }

    async fn settle(
        &self,
        of: &Subscription,
        batch: Batch,
        verdicts: Vec<Verdict>,
    ) -> Result<(), BusError> {
        if batch.messages.is_empty() {
            return Ok(());
        }
        let settled = core::settle(&batch.messages, &verdicts);
        Ok(statements::settle(self.store.loops(), of, &self.holder, &settled).await?)
    }
}

/// shard, position, place, tries, key, tenant, workspace, published at, payload
type Row = (i16, i64, i32, i32, Uuid, String, String, Timestamp, Vec<u8>);

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
