//! Keeps the leases of this instance: acquires free shards up to its share, renews them, and releases
//! those above its share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_mesh::{Doorbell, REBALANCE_DELAY};
use servo_model::Stream;
use servo_store::{Generation, Lease, LeaseTtl, Leases, LoopStore, Store, StoreError};
use tokio::sync::Mutex;

use super::Shards;
use super::lane::Message;
use crate::store::{instances, shards};

/// Acquires, renews and rebalances this instance's share of the execution shards.
#[derive(Debug, Clone)]
pub(crate) struct LeaseKeeper {
    leases: Leases,
    loops: LoopStore,
    shards: Shards,
    holder: Arc<str>,
    address: Arc<str>,
    /// An instance that was silent for this long counts as gone, and its leases expire.
    ttl: Duration,
    store: Store,
    held: Arc<Mutex<Held>>,
    doorbell: Doorbell,
}

#[derive(Debug)]
struct Held {
    leases: HashMap<i16, Lease>,
    generation: Generation,
    /// The number of living instances, and since when it is that number.
    instances: (usize, Instant),
}

impl LeaseKeeper {
    pub(crate) fn new(
        store: &Store,
        shards: Shards,
        holder: &str,
        address: &str,
        ttl: LeaseTtl,
    ) -> LeaseKeeper {
        LeaseKeeper {
            leases: Leases::new(store, Stream::Execution, holder, address, ttl),
            loops: store.loops().clone(),
            shards,
            holder: holder.into(),
            address: address.into(),
            ttl: ttl.get(),
            store: store.clone(),
            held: Arc::new(Mutex::new(Held {
                leases: HashMap::new(),
                generation: store.generation(),
                instances: (0, Instant::now()),
            })),
            doorbell: Doorbell::new(),
        }
    }

    /// Wakes the loop while shards move between instances.
    pub(crate) fn doorbell(&self) -> &Doorbell {
        &self.doorbell
    }

    /// Registers the instance, renews its leases and rebalances. Returns how many shards moved.
    pub(crate) async fn run_once(self) -> Result<usize, StoreError> {
        let instances =
            instances::register(&self.loops, &self.holder, &self.address, self.ttl).await?;
        let mut held = self.held.lock().await;
        self.release_after_reconnect(&mut held).await;
        if held.instances.0 != instances {
            held.instances = (instances, Instant::now());
        }
        let changed = held.instances.1;
        let held = &mut held.leases;
        let renewed = self.leases.renew(held.values().cloned().collect()).await?;
        for lease in &renewed.lost {
            self.send(lease.shard(), Message::Dropped(lease.shard()));
        }
        let lost = renewed.lost.len();
        *held = renewed
            .held
            .into_iter()
            .map(|lease| (lease.shard(), lease))
            .collect();
        self.send_renewals(held);
        let all = usize::from(Stream::Execution.shards().unsigned_abs());
        let share = all.div_ceil(instances.max(1));
        let released = self.release_excess(held, share).await?;
        let acquired = self.acquire(held, share).await?;
        // Other instances are about to release the shards above their share.
        if held.len() < share && changed.elapsed() < self.ttl {
            self.doorbell.ring_in(REBALANCE_DELAY);
        }
        self.shards
            .metrics
            .shards
            .set(i64::try_from(held.len()).unwrap_or(i64::MAX));
        self.catch_up_behind().await?;
        Ok(lost + released + acquired)
    }

    /// Releases all leases after the database connection was replaced, because a lease is only valid
    /// on the connection that acquired it. They are acquired again under a new epoch, and the shards
    /// are loaded again.
    async fn release_after_reconnect(&self, held: &mut Held) {
        let generation = self.store.generation();
        if std::mem::replace(&mut held.generation, generation) == generation {
            return;
        }
        self.release_all(held).await;
    }

    /// Releases all leases. A lease that cannot be released now expires.
    async fn release_all(&self, held: &mut Held) {
        let leases = std::mem::take(&mut held.leases);
        leases
            .keys()
            .for_each(|shard| self.send(*shard, Message::Dropped(*shard)));
        for lease in leases.into_values() {
            let _ = self.leases.release(lease).await;
        }
    }

    /// Releases all leases on shutdown, so that other instances need not wait until they expire.
    pub(crate) async fn leave(&self) {
        self.release_all(&mut *self.held.lock().await).await;
        let _ = instances::delete(&self.loops, &self.holder).await;
    }

    async fn acquire(
        &self,
        held: &mut HashMap<i16, Lease>,
        share: usize,
    ) -> Result<usize, StoreError> {
        let free =
            |shard: &i16| !held.contains_key(shard) && !self.shards.unreadable.contains(*shard);
        let candidates: Vec<i16> = (0..Stream::Execution.shards()).filter(free).collect();
        let acquired = self
            .leases
            .acquire(&candidates, share.saturating_sub(held.len()))
            .await?;
        let count = acquired.len();
        for lease in acquired {
            self.send(lease.shard(), Message::Acquired(Box::new(lease.clone())));
            held.insert(lease.shard(), lease);
        }
        Ok(count)
    }

    /// Releases the shards above the share and those that only a newer version can read.
    async fn release_excess(
        &self,
        held: &mut HashMap<i16, Lease>,
        share: usize,
    ) -> Result<usize, StoreError> {
        let (unreadable, mut excess): (Vec<i16>, Vec<i16>) = held
            .keys()
            .copied()
            .partition(|shard| self.shards.unreadable.contains(*shard));
        // Keeps neighbouring shards, as acquiring does, because neighbours share a lane.
        excess.sort_unstable();
        excess.drain(..share.min(excess.len()));
        excess.extend(unreadable);
        for shard in &excess {
            if let Some(lease) = held.remove(shard) {
                self.send(*shard, Message::Dropped(*shard));
                self.leases.release(lease).await?;
            }
        }
        Ok(excess.len())
    }

    fn send_renewals(&self, held: &HashMap<i16, Lease>) {
        self.shards.renewals.update(held.values());
        for lease in held.values() {
            self.send(lease.shard(), Message::Renewed(Box::new(lease.clone())));
        }
    }

    /// Wakes the lanes of shards that others appended to, in case a doorbell was lost.
    async fn catch_up_behind(&self) -> Result<(), StoreError> {
        for shard in shards::list_behind(&self.loops, &self.holder).await? {
            self.send(shard, Message::CatchUp(shard));
        }
        Ok(())
    }

    fn send(&self, shard: i16, message: Message) {
        let _ = self.shards.send(shard, message);
    }
}
