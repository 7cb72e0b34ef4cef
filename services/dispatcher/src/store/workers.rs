//! The registry of workers.

use std::time::Duration;

use servo_model::{TenantScope, Timestamp, WorkerId};
use servo_store::{LoopStore, StoreError, TenantTx, query};
use uuid::Uuid;

#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct WorkerRow {
    pub(crate) worker_id: Uuid,
    pub(crate) state: i16,
    pub(crate) session: String,
    pub(crate) info: Vec<u8>,
    pub(crate) active_attempts: i32,
    pub(crate) command: i16,
    pub(crate) version: i64,
    pub(crate) event_id: Option<Uuid>,
    pub(crate) cut_off_at: Option<Timestamp>,
    pub(crate) registered_at: Timestamp,
    pub(crate) seen_at: Timestamp,
}

/// Registers or renews a worker and returns the last command it was sent.
pub(crate) async fn register_worker(
    tx: &mut TenantTx,
    tenant: &TenantScope,
    worker: WorkerId,
    name: &str,
    session: &str,
    info: Vec<u8>,
    push_url: &str,
) -> Result<i16, StoreError> {
    let register = query(include_str!("register_worker.sql"))
        .bind(tenant)
        .bind(uuid(worker))
        .bind(name)
        .bind(session)
        .bind(info)
        .bind(push_url);
    let (command,): (i16,) = tx.one(register).await?;
    Ok(command)
}

pub(crate) async fn find_worker(
    tx: &mut TenantTx,
    tenant: &TenantScope,
    worker: WorkerId,
) -> Result<Option<WorkerRow>, StoreError> {
    tx.optional(
        query(include_str!("find_worker.sql"))
            .bind(tenant)
            .bind(uuid(worker)),
    )
    .await
}

/// Returns workers of a tenant after this name and id, in that order.
pub(crate) async fn page_workers(
    tx: &mut TenantTx,
    tenant: &TenantScope,
    after: Option<(String, WorkerId)>,
    at_most: usize,
) -> Result<Vec<WorkerRow>, StoreError> {
    let (name, id) = after.unzip();
    let page = query(include_str!("page_workers.sql"))
        .bind(tenant)
        .bind(name)
        .bind(id.map(uuid));
    tx.all(page.bind(i64::try_from(at_most).unwrap_or(i64::MAX)))
        .await
}

/// Deletes workers that left or were lost and have been silent for this long. Returns how many.
pub(crate) async fn forget_workers(
    loops: &LoopStore,
    silence: Duration,
) -> Result<u64, StoreError> {
    loops
        .execute(query(include_str!("forget_workers.sql")).bind(silence))
        .await
}

pub(crate) async fn lock_worker(
    tx: &mut TenantTx,
    tenant: &TenantScope,
    worker: WorkerId,
) -> Result<Option<WorkerRow>, StoreError> {
    tx.optional(
        query(include_str!("lock_worker.sql"))
            .bind(tenant)
            .bind(uuid(worker)),
    )
    .await
}

pub(crate) async fn command_worker(
    tx: &mut TenantTx,
    tenant: &TenantScope,
    worker: &WorkerRow,
) -> Result<(), StoreError> {
    let command = query(include_str!("command_worker.sql"))
        .bind(tenant)
        .bind(worker.worker_id)
        .bind(worker.command)
        .bind(worker.version)
        .bind(worker.event_id)
        .bind(worker.cut_off_at);
    tx.execute(command).await?;
    Ok(())
}

pub(crate) async fn worker_gone(
    tx: &mut TenantTx,
    tenant: &TenantScope,
    worker: WorkerId,
    session: &str,
) -> Result<(), StoreError> {
    tx.execute(
        query(include_str!("worker_gone.sql"))
            .bind(tenant)
            .bind(uuid(worker))
            .bind(session),
    )
    .await?;
    Ok(())
}

/// A worker that is connected here, with its number of live attempts.
pub(crate) type SeenWorker = (TenantScope, WorkerId, u32);

pub(crate) async fn note_seen(loops: &LoopStore, seen: &[SeenWorker]) -> Result<(), StoreError> {
    let note = query(include_str!("note_seen.sql"))
        .bind(
            seen.iter()
                .map(|(tenant, ..)| tenant.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(seen.iter().map(|(_, id, _)| uuid(*id)).collect::<Vec<_>>())
        .bind(
            seen.iter()
                .map(|(.., active)| i32::try_from(*active).unwrap_or(i32::MAX))
                .collect::<Vec<_>>(),
        );
    loops.execute(note).await?;
    Ok(())
}

/// Marks workers as lost and returns how many: connected ones after `silence`, pushed ones when
/// they have not registered again within `renewal`.
pub(crate) async fn note_lost(
    loops: &LoopStore,
    silence: Duration,
    renewal: Duration,
) -> Result<u64, StoreError> {
    loops
        .execute(
            query(include_str!("note_lost.sql"))
                .bind(silence)
                .bind(renewal),
        )
        .await
}

/// A worker that receives pushes.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct PushWorkerRow {
    pub(crate) tenant: TenantScope,
    pub(crate) worker_id: Uuid,
    pub(crate) session: String,
    pub(crate) info: Vec<u8>,
    pub(crate) command: i16,
    pub(crate) push_url: String,
}

pub(crate) async fn push_workers(loops: &LoopStore) -> Result<Vec<PushWorkerRow>, StoreError> {
    loops.all(query(include_str!("push_workers.sql"))).await
}

/// A worker with a command to drain (1) or to stop at once (2): tenant, id, command, cut-off time.
pub(crate) type CommandedWorker = (TenantScope, Uuid, i16, Option<Timestamp>);

pub(crate) async fn commanded_workers(
    loops: &LoopStore,
) -> Result<Vec<CommandedWorker>, StoreError> {
    loops
        .all(query(include_str!("commanded_workers.sql")))
        .await
}

fn uuid(worker: WorkerId) -> Uuid {
    Uuid::from_bytes(*worker.as_bytes())
}
