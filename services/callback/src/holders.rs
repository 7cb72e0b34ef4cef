//! Who holds which shard of runs, as last seen.

use std::time::{Duration, Instant};

use servo_mesh::{Mesh, Peer};
use servo_model::{Service, Stream};
use servo_proto::v1::scheduler_service_client::SchedulerServiceClient;
use servo_store::{LoopStore, Store, StoreError};
use tokio::sync::Mutex;

use crate::Config;

/// Leases move rarely: within this time one look serves everybody.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One instance of the scheduler.
pub(crate) struct Holder {
    pub(crate) address: String,
    pub(crate) client: SchedulerServiceClient<Peer>,
}

pub(crate) struct Holders {
    known: servo_mesh::Holders,
    loops: LoopStore,
    looked: Mutex<Option<Instant>>,
}

impl Holders {
    pub(crate) fn new(mesh: &Mesh<Config>, store: &Store) -> Holders {
        let known = mesh.holders(Service::Scheduler);
        Holders {
            known,
            loops: store.loops().clone(),
            looked: Mutex::new(None),
        }
    }

    pub(crate) fn of(&self, shard: i16) -> Option<Holder> {
        let instance = self.known.of(shard)?;
        let client = SchedulerServiceClient::new(instance.peer);
        Some(Holder {
            address: instance.address.to_string(),
            client,
        })
    }

    /// Looks again, unless somebody just did.
    pub(crate) async fn look(&self) -> Result<(), StoreError> {
        let mut looked = self.looked.lock().await;
        if looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return Ok(());
        }
        let leases = self.loops.holders(Stream::Execution).await?;
        self.known
            .learn(leases.into_iter().map(|lease| (lease.shard, lease.address)));
        *looked = Some(Instant::now());
        Ok(())
    }
}
