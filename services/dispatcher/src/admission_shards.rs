//! The engine as the owner of this instance's admission shards.

use std::collections::BTreeMap;

use servo_store::{Lease, LeaseKeeper, ShardOwner};
use tracing::info;

use crate::engine::{Engine, Message};

/// Keeps this instance's share of the admission shards.
pub(crate) type AdmissionLeases = LeaseKeeper<AdmissionShards>;

/// Passes changes of the held shards on to the engine.
pub(crate) struct AdmissionShards {
    engine: Engine,
}

impl AdmissionShards {
    pub(crate) fn new(engine: Engine) -> AdmissionShards {
        AdmissionShards { engine }
    }
}

impl ShardOwner for AdmissionShards {
    async fn update(&self, held: &[Lease]) {
        let epoch = |lease: &Lease| u64::try_from(lease.epoch()).unwrap_or_default();
        let leases: BTreeMap<i16, u64> = held
            .iter()
            .map(|lease| (lease.shard(), epoch(lease)))
            .collect();
        if *self.engine.held().borrow() != leases {
            info!(shards = ?leases.keys().collect::<Vec<_>>(), "admission shards changed");
            self.engine.send(Message::HeldShards(leases)).await;
        }
    }

    async fn leave(&self, shards: &[i16]) {
        self.engine.hand_over(shards.to_vec()).await;
    }
}
