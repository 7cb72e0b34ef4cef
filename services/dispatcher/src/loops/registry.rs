//! Keeping the registry's idea of who lives, at a slow pace and in one statement.

use std::time::Duration;

use servo_queue::PostgresQueue;
use servo_store::Store;

use super::engine::{Engine, Message};
use crate::metrics::Metrics;
use crate::rpc::RENEW_WITHIN;
use crate::{store, wire};

/// How often it is written who is there.
pub(crate) const SEEN_EVERY: Duration = Duration::from_secs(10);
/// Silence after which a worker is lost.
const LOST_AFTER: Duration = Duration::from_secs(60);

/// Silence after which nobody asks for a worker any more. Longer than the ledger knows the keys of its commands: whoever
/// comes back under the same id begins its versions anew.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(14 * 24 * 3_600);

/// Shows how full it is.
pub(crate) async fn measure(
    engine: &Engine,
    queue: Option<&PostgresQueue>,
    metrics: &Metrics,
) -> Result<(), servo_mesh::Error> {
    let (depths, workers) = engine
        .ask(|admission, _| (admission.depths(), admission.workers().count()))
        .await?;
    metrics.note(&depths, workers, engine.held().borrow().len());
    if let Some(queue) = queue {
        match queue.counts().await {
            Ok(counts) => metrics.note_queues(&counts),
            Err(error) => tracing::debug!(%error, "the queues could not be counted"),
        }
    }
    Ok(())
}

pub(crate) async fn run_once(store: Store, engine: Engine) -> Result<(), servo_mesh::Error> {
    engine.tell(Message::Beat);
    let since = wire::now() - LOST_AFTER.as_secs_f64();
    let seen = engine.ask(move |admission, sessions| {
        let active = admission.active_attempts();
        let workers = sessions.heard_since(since);
        let row = |worker: &crate::core::Worker| {
            (
                worker.tenant.clone(),
                worker.id,
                active.get(&worker.key()).copied().unwrap_or_default(),
            )
        };
        workers.map(row).collect::<Vec<_>>()
    });
    let seen = seen.await?;
    if !seen.is_empty() {
        store::note_seen(store.loops(), &seen)
            .await
            .map_err(crate::rpc::unavailable)?;
    }
    store::note_lost(store.loops(), LOST_AFTER, RENEW_WITHIN)
        .await
        .map_err(crate::rpc::unavailable)?;
    store::forget_workers(store.loops(), FORGOTTEN_AFTER)
        .await
        .map_err(crate::rpc::unavailable)?;
    Ok(())
}
