//! Which shards this instance holds: takes what is free up to its share, renews, and gives back what is too much.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_mesh::{Doorbell, REBALANCE_DELAY};
use servo_model::Stream;
use servo_store::{Generation, Lease, LeaseTtl, Leases, LoopStore, Store, StoreError, query};
use tokio::sync::Mutex;

use super::Shards;
use super::lane::Message;

/// The instances that live, each with a row it renews.
#[derive(Debug, Clone)]
pub(crate) struct LeaseKeeper {
    leases: Leases,
    loops: LoopStore,
    shards: Shards,
    holder: Arc<str>,
    address: Arc<str>,
    /// Who was silent for so long is gone, and so are its leases.
    ttl: Duration,
    store: Store,
    held: Arc<Mutex<Held>>,
    doorbell: Doorbell,
}

#[derive(Debug)]
struct Held {
    leases: HashMap<i16, Lease>,
    generation: Generation,
    /// How many there are of us, and since when.
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

    /// Rings while shards change hands.
    pub(crate) fn doorbell(&self) -> &Doorbell {
        &self.doorbell
    }

    /// One round: say that we live, renew, share out. Answers how many shards changed hands.
    pub(crate) async fn run_once(self) -> Result<usize, StoreError> {
        let instances = self.register_instance().await?;
        let mut held = self.held.lock().await;
        self.release_after_reconnect(&mut held).await;
        if held.instances.0 != instances {
            held.instances = (instances, Instant::now());
        }
        let changed = held.instances.1;
        let held = &mut held.leases;
        let renewed = self.leases.renew(held.values().cloned().collect()).await?;
        for lease in &renewed.lost {
            self.tell(lease.shard(), Message::Drop(lease.shard()));
        }
        let lost = renewed.lost.len();
        *held = renewed
            .held
            .into_iter()
            .map(|lease| (lease.shard(), lease))
            .collect();
        self.tell_renewed(held);
        let all = usize::from(Stream::Execution.shards().unsigned_abs());
        let share = all.div_ceil(instances.max(1));
        let given = self.give_back(held, share).await?;
        let taken = self.take(held, share).await?;
        // The others are about to give back what is above their share.
        if held.len() < share && changed.elapsed() < self.ttl {
            self.doorbell.ring_in(REBALANCE_DELAY);
        }
        self.shards
            .metrics
            .shards
            .set(i64::try_from(held.len()).unwrap_or(i64::MAX));
        self.look().await?;
        Ok(lost + given + taken)
    }

    /// What was acquired over a connection that is gone is worth nothing: it is given back, to be taken again under a
    /// new epoch with everything read anew.
    async fn release_after_reconnect(&self, held: &mut Held) {
        let generation = self.store.generation();
        if std::mem::replace(&mut held.generation, generation) == generation {
            return;
        }
        self.release_all(held).await;
    }

    /// What cannot be released now runs out by itself.
    async fn release_all(&self, held: &mut Held) {
        let leases = std::mem::take(&mut held.leases);
        leases
            .keys()
            .for_each(|shard| self.tell(*shard, Message::Drop(*shard)));
        for lease in leases.into_values() {
            let _ = self.leases.release(lease).await;
        }
    }

    /// Gives everything back at once, so that others need not wait for the leases to run out.
    pub(crate) async fn leave(&self) {
        self.release_all(&mut *self.held.lock().await).await;
        let _ = self
            .loops
            .execute(query(include_str!("../store/leave.sql")).bind(&*self.holder))
            .await;
    }

    async fn register_instance(&self) -> Result<usize, StoreError> {
        let note = query(include_str!("../store/note_instance.sql"))
            .bind(&*self.holder)
            .bind(&*self.address)
            .bind(self.ttl.as_secs_f64());
        let rows: Vec<(i64,)> = self.loops.all(note).await?;
        Ok(rows
            .first()
            .map_or(1, |(count,)| usize::try_from(*count).unwrap_or(1)))
    }

    async fn take(
        &self,
        held: &mut HashMap<i16, Lease>,
        share: usize,
    ) -> Result<usize, StoreError> {
        let free =
            |shard: &i16| !held.contains_key(shard) && !self.shards.unreadable.contains(*shard);
        let wanted: Vec<i16> = (0..Stream::Execution.shards()).filter(free).collect();
        let taken = self
            .leases
            .acquire(&wanted, share.saturating_sub(held.len()))
            .await?;
        let count = taken.len();
        for lease in taken {
            self.tell(lease.shard(), Message::Take(Box::new(lease.clone())));
            held.insert(lease.shard(), lease);
        }
        Ok(count)
    }

    /// What is above the share, and what only a newer version can read.
    async fn give_back(
        &self,
        held: &mut HashMap<i16, Lease>,
        share: usize,
    ) -> Result<usize, StoreError> {
        let (unreadable, mut given): (Vec<i16>, Vec<i16>) = held
            .keys()
            .copied()
            .partition(|shard| self.shards.unreadable.contains(*shard));
        // Keeps neighbours, as acquiring takes them.
        given.sort_unstable();
        given.drain(..share.min(given.len()));
        given.extend(unreadable);
        for shard in &given {
            if let Some(lease) = held.remove(shard) {
                self.tell(*shard, Message::Drop(*shard));
                self.leases.release(lease).await?;
            }
        }
        Ok(given.len())
    }

    fn tell_renewed(&self, held: &HashMap<i16, Lease>) {
        self.shards.renewals.note(held.values());
        for lease in held.values() {
            self.tell(lease.shard(), Message::Renewed(Box::new(lease.clone())));
        }
    }

    /// Every loop also looks by itself: a lost doorbell costs a round, nothing more.
    async fn look(&self) -> Result<(), StoreError> {
        let behind = query(include_str!("../store/behind.sql")).bind(&*self.holder);
        let shards: Vec<(i16,)> = self.loops.all(behind).await?;
        for (shard,) in shards {
            self.tell(shard, Message::Look(shard));
        }
        Ok(())
    }

    fn tell(&self, shard: i16, message: Message) {
        let _ = self.shards.send(shard, message);
    }
}
