//! Pauses of admission.

use servo_model::{TenantScope, Timestamp};
use servo_store::{LoopStore, StoreError, TenantTx, query};
use uuid::Uuid;

#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct PauseRow {
    pub(crate) tenant: TenantScope,
    pub(crate) pause_id: String,
    pub(crate) workspace: String,
    pub(crate) pool: String,
    pub(crate) active: bool,
    pub(crate) version: i64,
    pub(crate) event_id: Uuid,
    pub(crate) principal: String,
    pub(crate) comment: String,
    pub(crate) started_at: Timestamp,
}

/// The next state of a pause.
#[derive(Debug, Clone)]
pub(crate) struct NewPauseState<'a> {
    pub(crate) tenant: &'a TenantScope,
    pub(crate) pause_id: &'a str,
    pub(crate) workspace: &'a str,
    pub(crate) pool: &'a str,
    pub(crate) active: bool,
    pub(crate) version: i64,
    pub(crate) event_id: Uuid,
    pub(crate) principal: &'a str,
    pub(crate) comment: &'a str,
}

pub(crate) async fn lock_pause(
    tx: &mut TenantTx,
    tenant: &TenantScope,
    pause_id: &str,
) -> Result<Option<PauseRow>, StoreError> {
    tx.optional(
        query(include_str!("lock_pause.sql"))
            .bind(tenant)
            .bind(pause_id),
    )
    .await
}

pub(crate) async fn put_pause(
    tx: &mut TenantTx,
    pause: &NewPauseState<'_>,
) -> Result<PauseRow, StoreError> {
    let put = query(include_str!("put_pause.sql"))
        .bind(pause.tenant)
        .bind(pause.pause_id)
        .bind(pause.workspace)
        .bind(pause.pool)
        .bind(pause.active)
        .bind(pause.version)
        .bind(pause.event_id)
        .bind(pause.principal)
        .bind(pause.comment);
    tx.one(put).await
}

pub(crate) async fn active_pauses_of(
    tx: &mut TenantTx,
    tenant: &TenantScope,
) -> Result<Vec<PauseRow>, StoreError> {
    tx.all(query(include_str!("list_pauses.sql")).bind(tenant))
        .await
}

/// Returns the active pauses of all tenants.
pub(crate) async fn active_pauses(loops: &LoopStore) -> Result<Vec<PauseRow>, StoreError> {
    loops.all(query(include_str!("all_pauses.sql"))).await
}
