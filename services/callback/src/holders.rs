//! Who holds which shard of runs, as last seen.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use servo_mesh::{Mesh, Peer};
use servo_model::{Service, Stream};
use servo_proto::v1::scheduler_service_client::SchedulerServiceClient;
use servo_store::{LoopStore, Store, StoreError};
use tokio::sync::Mutex as AsyncMutex;

use crate::Config;

/// Leases move rarely: within this time one look serves everybody.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) type Holder = Arc<Instance>;

/// One instance of the scheduler.
pub(crate) struct Instance {
    pub(crate) address: String,
    pub(crate) client: SchedulerServiceClient<Peer>,
}

pub(crate) struct Holders {
    mesh: Arc<Mesh<Config>>,
    loops: LoopStore,
    known: Mutex<HashMap<i16, Holder>>,
    looked: AsyncMutex<Option<Instant>>,
}

impl Holders {
    pub(crate) fn new(mesh: Arc<Mesh<Config>>, store: &Store) -> Holders {
        Holders { mesh, loops: store.loops().clone(), known: Mutex::default(), looked: AsyncMutex::new(None) }
    }

    pub(crate) fn of(&self, shard: i16) -> Option<Holder> {
        self.known().get(&shard).cloned()
    }

    /// Looks again, unless somebody just did.
    pub(crate) async fn look(&self) -> Result<(), StoreError> {
        let mut looked = self.looked.lock().await;
        if looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return Ok(());
        }
        let rows = self.loops.holders(Stream::Execution).await?;
        let mut known = self.known();
        let mut instances: HashMap<String, Holder> =
            known.values().map(|holder| (holder.address.clone(), holder.clone())).collect();
        known.clear();
        for row in rows {
            let instance = match instances.get(&row.address) {
                Some(instance) => instance.clone(),
                None => match self.connect(&row.address) {
                    Some(instance) => instances.entry(row.address).or_insert(instance).clone(),
                    None => continue,
                },
            };
            known.insert(row.shard, instance);
        }
        *looked = Some(Instant::now());
        Ok(())
    }

    fn connect(&self, address: &str) -> Option<Holder> {
        match self.mesh.peer_at(Service::Scheduler, address) {
            Ok(peer) => Some(Arc::new(Instance {
                address: address.to_owned(),
                client: SchedulerServiceClient::new(peer),
            })),
            Err(error) => {
                tracing::error!(%error, address, "the holder of a shard gave an address that is none");
                None
            }
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<i16, Holder>> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
