//! The dispatchers that admit each tenant's tasks. A worker's stream is forwarded to the holder
//! directly, because other instances would refuse it and a worker outside the mesh cannot reach the
//! holder itself.

use std::time::{Duration, Instant};

use servo_mesh::{Holders, Mesh, Peer};
use servo_model::{Service, Stream, TenantId};
use servo_store::{LoopStore, Store};
use tokio::sync::Mutex;
use tracing::warn;

use crate::Config;

/// Minimum time between two reads of the lease rows. Leases move rarely, so one read serves all
/// callers.
const REFRESH_INTERVAL_MIN: Duration = Duration::from_millis(500);

pub(crate) struct DispatcherHolders {
    known: Holders,
    loops: LoopStore,
    refreshed_at: Mutex<Option<Instant>>,
}

impl DispatcherHolders {
    pub(crate) fn new(mesh: &Mesh<Config>, store: &Store) -> DispatcherHolders {
        let known = mesh.holders(Service::Dispatcher);
        DispatcherHolders {
            known,
            loops: store.loops().clone(),
            refreshed_at: Mutex::new(None),
        }
    }

    /// Returns `None` while the tenant's admission shard has no known holder.
    pub(crate) async fn peer_for(&self, tenant: &str) -> Option<Peer> {
        let tenant: TenantId = tenant.parse().ok()?;
        self.refresh().await;
        self.known
            .of(tenant.admission_shard())
            .map(|instance| instance.peer)
    }

    async fn refresh(&self) {
        let mut refreshed_at = self.refreshed_at.lock().await;
        if refreshed_at.is_some_and(|at| at.elapsed() < REFRESH_INTERVAL_MIN) {
            return;
        }
        match self.loops.holders(Stream::Dispatch).await {
            Ok(leases) => self
                .known
                .learn(leases.into_iter().map(|lease| (lease.shard, lease.address))),
            Err(error) => {
                warn!(%error, "failed to refresh dispatcher lease holders; using the last known set")
            }
        }
        *refreshed_at = Some(Instant::now());
    }
}
