//! The engine as the owner of this instance's admission shards.

use std::collections::BTreeMap;

use servo_model::{AdmissionShard, Epoch, ShardId};
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
        let lease =
            |lease: &Lease| Some((AdmissionShard::of_dispatch(lease.shard())?, lease.epoch()));
        let leases: BTreeMap<AdmissionShard, Epoch> = held.iter().filter_map(lease).collect();
        if *self.engine.held().borrow() != leases {
            let shards: Vec<u32> = leases.keys().copied().map(u32::from).collect();
            info!(?shards, "admission shards changed");
            self.engine.send(Message::HeldShards(leases)).await;
        }
    }

    async fn leave(&self, shards: &[ShardId]) {
        let shards = shards.iter().copied();
        self.engine
            .hand_over(shards.filter_map(AdmissionShard::of_dispatch).collect())
            .await;
    }
}
