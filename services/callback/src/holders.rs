//! The holders of execution shards, as last read.

use std::time::{Duration, Instant};

use servo_mesh::{Mesh, Peer};
use servo_model::{Service, Stream};
use servo_proto::v1::scheduler_service_client::SchedulerServiceClient;
use servo_store::{LoopStore, Store, StoreError};
use tokio::sync::Mutex;

use crate::Config;

/// Minimum time between two reads of the lease rows. Leases move rarely, so one read serves all
/// callers.
const REFRESH_INTERVAL_MIN: Duration = Duration::from_millis(20);

/// An instance of the scheduler that holds shards.
pub(crate) struct Holder {
    pub(crate) address: String,
    pub(crate) client: SchedulerServiceClient<Peer>,
}

pub(crate) struct Holders {
    known: servo_mesh::Holders,
    loops: LoopStore,
    refreshed_at: Mutex<Option<Instant>>,
}

impl Holders {
    pub(crate) fn new(mesh: &Mesh<Config>, store: &Store) -> Holders {
        let known = mesh.holders(Service::Scheduler);
        Holders {
            known,
            loops: store.loops().clone(),
            refreshed_at: Mutex::new(None),
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

    /// Reads the lease rows again, unless they were read a moment ago.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        let mut refreshed_at = self.refreshed_at.lock().await;
        if refreshed_at.is_some_and(|at| at.elapsed() < REFRESH_INTERVAL_MIN) {
            return Ok(());
        }
        let leases = self.loops.holders(Stream::Execution).await?;
        self.known
            .learn(leases.into_iter().map(|lease| (lease.shard, lease.address)));
        *refreshed_at = Some(Instant::now());
        Ok(())
    }
}
