//! Keeping an instance's fair share of a stream's shards.
//!
//! Every service whose work is divided by shards runs one [`LeaseKeeper`] and calls
//! [`LeaseKeeper::run_once`] at a third of the lease's lifetime. A round
//!
//! 1. records that the instance is alive and counts those that are, because the fair share of each
//!    is the number of shards divided by the number of instances, rounded up;
//! 2. renews the held leases. When the renewal fails, leases that have not expired are kept: no
//!    other instance can acquire them before they expire by the local clock, so one failed
//!    statement does not move work to other instances;
//! 3. gives back leases above the share, and shards that this instance cannot process;
//! 4. acquires free shards up to the share.
//!
//! The owner of the shards learns of every change through [`ShardOwner`], and of a shard that is
//! given back before the database does, so that it can stop using it first. Leases that were
//! acquired over a connection that broke are given back and acquired again under a new epoch,
//! because everything the owner remembers of them may be outdated.

use std::future::Future;
use std::time::{Duration, Instant};

use servo_model::ShardId;
use tokio::sync::Mutex;

use crate::error::StoreError;
use crate::generation::Generation;
use crate::lease::{Lease, Leases};
use crate::store::Store;

/// How soon an instance looks again while shards move from others to it.
const REBALANCE_DELAY: Duration = Duration::from_millis(100);

/// The part of a service that uses the shards.
pub trait ShardOwner: Send + Sync {
    /// Whether this instance can process the shard. One that holds an event of a newer version is
    /// left to instances that know it.
    fn can_hold(&self, _shard: ShardId) -> bool {
        true
    }

    /// Everything that is held now, after any change and after every renewal.
    fn update(&self, held: &[Lease]) -> impl Future<Output = ()> + Send;

    /// These shards are about to be given back: stop using them before this returns.
    fn leave(&self, _shards: &[ShardId]) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// The result of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// How many shards were lost, given back or acquired.
    pub changed: usize,
    /// Set while other instances are about to give back shards.
    pub again_in: Option<Duration>,
}

/// See the module's page.
pub struct LeaseKeeper<O> {
    store: Store,
    leases: Leases,
    owner: O,
    state: Mutex<State>,
}

struct State {
    held: Vec<Lease>,
    /// The connections that the leases were acquired over.
    generation: Generation,
    instances: usize,
    /// When the number of instances last changed.
    instances_changed: Instant,
}

impl<O: ShardOwner> LeaseKeeper<O> {
    pub fn new(store: &Store, leases: Leases, owner: O) -> LeaseKeeper<O> {
        let state = State {
            held: Vec::new(),
            generation: store.generation(),
            instances: 0,
            instances_changed: Instant::now(),
        };
        LeaseKeeper {
            store: store.clone(),
            leases,
            owner,
            state: Mutex::new(state),
        }
    }

    pub fn owner(&self) -> &O {
        &self.owner
    }

    /// The leases that are held now.
    pub async fn held(&self) -> Vec<Lease> {
        self.state.lock().await.held.clone()
    }

    /// One round, see the module's page.
    pub async fn run_once(&self) -> Result<Round, StoreError> {
        let mut state = self.state.lock().await;
        let round = self.round(&mut state).await;
        if round.is_err() {
            let now = Instant::now();
            state.held.retain(|lease| now < lease.expires());
        }
        self.owner.update(&state.held).await;
        round
    }

    /// Gives everything back, so that others need not wait until the leases expire. Leases that
    /// cannot be released now expire later.
    pub async fn leave(&self) {
        let mut state = self.state.lock().await;
        self.release_all(&mut state).await;
        if let Err(error) = self.leases.forget_instance().await {
            tracing::debug!(%error, "could not remove this instance; the others forget it soon");
        }
    }

    async fn round(&self, state: &mut State) -> Result<Round, StoreError> {
        let generation = self.store.generation();
        if std::mem::replace(&mut state.generation, generation) != generation {
            self.release_all(state).await;
        }
        let instances = self.leases.note_instance().await?;
        if state.instances != instances {
            state.instances = instances;
            state.instances_changed = Instant::now();
        }
        let renewed = self.leases.renew(state.held.clone()).await?;
        let lost = renewed.lost.len();
        state.held = renewed.held;
        let share = fair_share(self.leases.stream().shards().count(), instances);
        let given = self.give_back(state, share).await?;
        let acquired = self.acquire(state, share).await?;
        let rebalancing = state.instances_changed.elapsed() < self.leases.ttl();
        Ok(Round {
            changed: lost + given + acquired,
            again_in: (state.held.len() < share && rebalancing).then_some(REBALANCE_DELAY),
        })
    }

    async fn give_back(&self, state: &mut State, share: usize) -> Result<usize, StoreError> {
        // The lowest stay: acquiring takes neighbours, and neighbours share work.
        state.held.sort_unstable_by_key(Lease::shard);
        let (mut kept, mut given): (Vec<Lease>, Vec<Lease>) = std::mem::take(&mut state.held)
            .into_iter()
            .partition(|lease| self.owner.can_hold(lease.shard()));
        given.extend(kept.split_off(share.min(kept.len())));
        state.held = kept;
        if given.is_empty() {
            return Ok(0);
        }
        let shards: Vec<ShardId> = given.iter().map(Lease::shard).collect();
        tracing::info!(stream = ?self.leases.stream(), ?shards, "releasing shards");
        self.owner.leave(&shards).await;
        self.owner.update(&state.held).await;
        for lease in given {
            self.leases.release(lease).await?;
        }
        Ok(shards.len())
    }

    async fn acquire(&self, state: &mut State, share: usize) -> Result<usize, StoreError> {
        let is_held = |shard: ShardId| state.held.iter().any(|lease| lease.shard() == shard);
        let wanted: Vec<ShardId> = self
            .leases
            .stream()
            .shards()
            .filter(|shard| !is_held(*shard) && self.owner.can_hold(*shard))
            .collect();
        let at_most = share.saturating_sub(state.held.len());
        let acquired = self.leases.acquire(&wanted, at_most).await?;
        let count = acquired.len();
        if count > 0 {
            let shards: Vec<ShardId> = acquired.iter().map(Lease::shard).collect();
            tracing::info!(stream = ?self.leases.stream(), ?shards, "acquired shards");
        }
        state.held.extend(acquired);
        Ok(count)
    }

    async fn release_all(&self, state: &mut State) {
        let leases = std::mem::take(&mut state.held);
        let shards: Vec<ShardId> = leases.iter().map(Lease::shard).collect();
        self.owner.leave(&shards).await;
        self.owner.update(&[]).await;
        for lease in leases {
            let _ = self.leases.release(lease).await;
        }
    }
}

/// How many shards one of `instances` holds at most, so that all shards are held.
fn fair_share(shards: usize, instances: usize) -> usize {
    shards.div_ceil(instances.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_all_shards_and_are_even() {
        let check = |instances, share| assert_eq!(fair_share(16, instances), share, "{instances}");
        check(0, 16);
        check(1, 16);
        check(2, 8);
        check(3, 6);
        check(16, 1);
        check(40, 1);
    }
}
