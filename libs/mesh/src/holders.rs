//! The instances that hold shards, learned from leases, for forwarding calls to the holder.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::{Service, ShardId};

use crate::peer::{Peer, parse_address};
use crate::runtime::Runtime;

/// One instance of a service.
#[derive(Clone)]
pub struct Instance {
    pub address: Arc<str>,
    pub peer: Peer,
}

/// The last known holder of each shard. Uses one connection per instance, however many shards it
/// holds.
#[derive(Clone)]
pub struct Holders {
    runtime: Arc<Runtime>,
    service: Service,
    known: Arc<Mutex<HashMap<ShardId, Instance>>>,
}

impl Holders {
    pub(crate) fn new(runtime: Arc<Runtime>, service: Service) -> Holders {
        Holders {
            runtime,
            service,
            known: Arc::default(),
        }
    }

    pub fn of(&self, shard: ShardId) -> Option<Instance> {
        self.known().get(&shard).cloned()
    }

    /// Replaces the known holders with these: shards, each with its holder's address.
    pub fn learn(&self, leases: impl IntoIterator<Item = (ShardId, String)>) {
        let mut known = self.known();
        let mut instances: HashMap<Arc<str>, Instance> = known
            .drain()
            .map(|(_, instance)| (instance.address.clone(), instance))
            .collect();
        for (shard, address) in leases {
            let instance = match instances.get(address.as_str()) {
                Some(instance) => Some(instance.clone()),
                None => self.connect(&address),
            };
            if let Some(instance) = instance {
                instances.insert(instance.address.clone(), instance.clone());
                known.insert(shard, instance);
            }
        }
    }

    fn connect(&self, address: &str) -> Option<Instance> {
        match parse_address(self.service, address) {
            Ok(uri) => {
                let peer = Peer::new(self.runtime.clone(), self.service, uri);
                Some(Instance {
                    address: address.into(),
                    peer,
                })
            }
            Err(error) => {
                tracing::error!(%error, address, "the holder of a shard registered an invalid address");
                None
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ShardId, Instance>> {
        self.known
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
