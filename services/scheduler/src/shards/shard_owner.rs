//! The lanes as the owners of this instance's execution shards.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use servo_model::{Epoch, ShardId, Stream};
use servo_store::{Lease, LeaseKeeper, LeaseTtl, Leases, LoopStore, ShardOwner, Store, StoreError};

use super::Shards;
use super::lane::Message;
use crate::store::shards;

/// Keeps this instance's share of the execution shards.
pub(crate) type ExecutionLeases = LeaseKeeper<ExecutionShards>;

/// Passes changes of the held shards on to the lanes.
pub(crate) struct ExecutionShards {
    shards: Shards,
    /// The epochs last sent to the lanes.
    epochs: Mutex<HashMap<ShardId, Epoch>>,
}

impl ShardOwner for ExecutionShards {
    fn can_hold(&self, shard: ShardId) -> bool {
        !self.shards.is_unreadable(shard)
    }

    async fn update(&self, held: &[Lease]) {
        self.shards.renewals.update(held.iter());
        let mut epochs = self.epochs.lock().unwrap_or_else(PoisonError::into_inner);
        let new: HashMap<ShardId, Epoch> = held
            .iter()
            .map(|lease| (lease.shard(), lease.epoch()))
            .collect();
        for (shard, epoch) in epochs.iter() {
            if new.get(shard) != Some(epoch) {
                self.shards.try_send(*shard, Message::Dropped(*shard));
            }
        }
        for lease in held {
            let known = epochs.get(&lease.shard()) == Some(&lease.epoch());
            let lease = Box::new(lease.clone());
            let shard = lease.shard();
            let message = if known {
                Message::Renewed(lease)
            } else {
                Message::Acquired(lease)
            };
            self.shards.try_send(shard, message);
        }
        *epochs = new;
        let count = i64::try_from(held.len()).unwrap_or(i64::MAX);
        self.shards.metrics.shards.set(count);
    }
}

/// The loop that keeps the leases. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LeaseLoop {
    leases: Arc<ExecutionLeases>,
    loops: LoopStore,
    holder: Arc<str>,
}

impl LeaseLoop {
    pub(crate) fn new(
        store: &Store,
        shards: Shards,
        holder: &str,
        address: &str,
        ttl: LeaseTtl,
    ) -> LeaseLoop {
        let leases = Leases::new(store.loops(), Stream::Execution, holder, address, ttl);
        let owner = ExecutionShards {
            shards,
            epochs: Mutex::default(),
        };
        LeaseLoop {
            leases: Arc::new(LeaseKeeper::new(store, leases, owner)),
            loops: store.loops().clone(),
            holder: holder.into(),
        }
    }

    /// Renews and rebalances, then lets the lanes fold shards that others appended to. A shard with
    /// traffic folds earlier, because the fence refuses its next flush. Returns when to look again
    /// while shards move.
    pub(crate) async fn run_once(self) -> Result<Option<Duration>, StoreError> {
        let round = self.leases.run_once().await?;
        let shards = &self.leases.owner().shards;
        for shard in shards::list_behind(&self.loops, &self.holder).await? {
            shards.try_send(shard, Message::CatchUp(shard));
        }
        Ok(round.again_in)
    }

    /// Releases all leases on shutdown, so that other instances need not wait until they expire.
    pub(crate) async fn leave(&self) {
        self.leases.leave().await;
    }
}
