//! Who admits a tenant's tasks. Workers' streams go straight there: whoever else they reached would refuse them, and from
//! outside there is no other way to the right one.

use std::time::{Duration, Instant};

use servo_mesh::{Holders, Mesh, Peer};
use servo_model::{Service, Stream, TenantId};
use servo_store::{LoopStore, Store};
use tokio::sync::Mutex;

use crate::Config;

/// Leases move rarely: within this time one look serves everybody.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(crate) struct Admitting {
    known: Holders,
    loops: LoopStore,
    looked: Mutex<Option<Instant>>,
}

impl Admitting {
    pub(crate) fn new(mesh: &Mesh<Config>, store: &Store) -> Admitting {
        let known = mesh.holders(Service::Dispatcher);
        Admitting {
            known,
            loops: store.loops().clone(),
            looked: Mutex::new(None),
        }
    }

    /// `None` while nobody is known to admit for the tenant.
    pub(crate) async fn peer_for(&self, tenant: &str) -> Option<Peer> {
        let tenant: TenantId = tenant.parse().ok()?;
        self.look().await;
        self.known
            .of(tenant.admission_shard())
            .map(|instance| instance.peer)
    }

    async fn look(&self) {
        let mut looked = self.looked.lock().await;
        if looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        match self.loops.holders(Stream::Dispatch).await {
            Ok(leases) => self
                .known
                .learn(leases.into_iter().map(|lease| (lease.shard, lease.address))),
            Err(error) => {
                tracing::warn!(%error, "who admits tasks could not be read; the last known still count")
            }
        }
        *looked = Some(Instant::now());
    }
}
