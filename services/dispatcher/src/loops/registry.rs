//! Recording which workers are alive, and measuring the load.

use std::time::Duration;

use servo_queue::PostgresQueue;
use servo_store::{Store, StoreError};
use tracing::debug;

use crate::core::{REGISTRATION_TTL, Worker};
use crate::engine::{Engine, Message};
use crate::metrics::Metrics;
use crate::store;

/// How often the workers that are connected here are recorded.
pub(crate) const RECORD_INTERVAL: Duration = Duration::from_secs(10);
/// Silence after which a worker counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(60);

/// Silence after which a worker's row is deleted. Must be longer than the ledger keeps the
/// idempotency keys of commands, because a worker that returns with the same id starts its versions
/// at 1 again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(14 * 24 * 3_600);

pub(crate) struct RegistryLoop {
    pub(crate) store: Store,
    pub(crate) engine: Engine,
    pub(crate) metrics: Metrics,
    /// `None` when pushes are off.
    pub(crate) queue: Option<PostgresQueue>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistryError {
    #[error("{0}")]
    Engine(servo_mesh::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RegistryLoop {
    pub(crate) async fn run_once(&self) -> Result<(), RegistryError> {
        self.measure().await?;
        self.engine.send(Message::Tick).await;
        let seen = self.seen_workers().await?;
        let loops = self.store.loops();
        if !seen.is_empty() {
            store::note_seen(loops, &seen).await?;
        }
        store::note_lost(loops, LOST_AFTER, REGISTRATION_TTL).await?;
        store::forget_workers(loops, FORGOTTEN_AFTER).await?;
        Ok(())
    }

    async fn measure(&self) -> Result<(), RegistryError> {
        let (loads, workers) = self
            .engine
            .query(|admission, _| (admission.loads(), admission.workers().count()))
            .await
            .map_err(RegistryError::Engine)?;
        let shards = self.engine.held().borrow().len();
        self.metrics.set_loads(&loads, workers, shards);
        if let Some(queue) = &self.queue {
            match queue.counts().await {
                Ok(counts) => self.metrics.set_queues(&counts),
                Err(error) => debug!(%error, "failed to count the push queues"),
            }
        }
        Ok(())
    }

    async fn seen_workers(&self) -> Result<Vec<store::SeenWorker>, RegistryError> {
        let since = servo_mesh::now().minus(LOST_AFTER);
        let seen = self.engine.query(move |admission, worker_streams| {
            let active = admission.active_attempts();
            let row = |worker: &Worker| {
                (
                    worker.tenant.clone(),
                    worker.id,
                    active.get(&worker.key()).copied().unwrap_or_default(),
                )
            };
            worker_streams.seen_since(since).map(row).collect()
        });
        seen.await.map_err(RegistryError::Engine)
    }
}
