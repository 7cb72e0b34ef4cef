//! Refreshing the set of workers that receive pushes.

use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use servo_model::WorkerId;
use servo_proto::v1 as pb;
use servo_store::{Store, StoreError};

use crate::core::push_targets::allows;
use crate::engine::{Engine, Message, PushEndpoint, PushWorker};
use crate::envelope::Signer;
use crate::store::PushWorkerRow;
use crate::{store, wire};

/// How often the workers that registered at other instances are read.
pub(crate) const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Reads the workers that receive pushes and passes them to the engine.
pub(crate) async fn run_once(
    store: Store,
    engine: Engine,
    signer: Signer,
    allowed: Arc<[String]>,
) -> Result<(), StoreError> {
    let mut rows = store::push_workers(store.loops()).await?;
    // An operator may have removed a target since the worker registered.
    rows.retain(|row| allows(&allowed, &row.push_url));
    let workers = rows.into_iter().filter_map(|row| push_worker(row, &signer));
    engine.send(Message::PushWorkers(workers.collect())).await;
    Ok(())
}

/// Returns `None` for a row that cannot be decoded.
fn push_worker(row: PushWorkerRow, signer: &Signer) -> Option<PushWorker> {
    let id = WorkerId::from_bytes(*row.worker_id.as_bytes());
    let info = pb::WorkerInfo::decode(&*row.info).ok()?;
    let key = signer.worker_key(&row.tenant, id, &row.session);
    let mut worker = wire::worker(id, &row.session, row.tenant, &info, 0).ok()?;
    worker.draining = row.command != 0;
    Some(PushWorker {
        worker,
        endpoint: PushEndpoint::new(&row.push_url, key),
    })
}
