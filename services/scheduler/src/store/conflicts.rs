//! Requests under the run key of another request.

use servo_mesh::filter::TimeRange;
use servo_model::request::RequestFingerprint;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::sqlx::FromRow;
use servo_store::{LoopStore, StoreError, TenantTx, query};
use uuid::Uuid;

/// A conflict as lists show it.
#[derive(Debug, FromRow)]
pub(crate) struct ListedConflict {
    pub event_id: Uuid,
    pub request: Vec<u8>,
    pub recorded_at: Timestamp,
    /// The request of the run that holds the key.
    pub first_request: Vec<u8>,
}

/// Which conflicts a list contains; `None` matches any.
#[derive(Debug)]
pub(crate) struct ConflictFilter<'a> {
    pub run_id: Option<RunId>,
    pub run_key: Option<&'a str>,
    pub recorded: TimeRange,
}

/// Lists the conflicts before the cursor: when the last one was recorded, and its event.
pub(crate) async fn list(
    tx: &mut TenantTx,
    (tenant, workspace): (&TenantId, &str),
    filter: ConflictFilter<'_>,
    (at, event_id): (Timestamp, Uuid),
    limit: usize,
) -> Result<Vec<ListedConflict>, StoreError> {
    let select = query(include_str!("list_conflicts.sql"))
        .bind(tenant)
        .bind(workspace)
        .bind(at)
        .bind(event_id)
        .bind(limit as i64)
        .bind(filter.run_id.map(|id| Uuid::from_bytes(*id.as_bytes())))
        .bind(filter.run_key)
        .bind(filter.recorded.from)
        .bind(filter.recorded.until);
    tx.all(select).await
}

/// Whether this request is already recorded as a conflict of the run.
pub(crate) async fn is_recorded(
    loops: &LoopStore,
    tenant: &TenantId,
    run_id: RunId,
    fingerprint: &RequestFingerprint,
) -> Result<bool, StoreError> {
    let select = query(include_str!("find_conflict.sql"))
        .bind(Uuid::from_bytes(*run_id.as_bytes()))
        .bind(fingerprint.digest().as_bytes().as_slice())
        .bind(tenant);
    let rows: Vec<(Uuid,)> = loops.all(select).await?;
    Ok(!rows.is_empty())
}

/// A row of `scheduler.run_key_conflicts`.
#[derive(Debug, FromRow)]
pub(crate) struct ConflictRow {
    pub tenant: TenantId,
    pub workspace: String,
    pub event_id: Uuid,
    pub run_id: Uuid,
    pub request: Vec<u8>,
    pub fingerprint: Vec<u8>,
    pub recorded_at: Timestamp,
    /// The ledger still has the idempotency key of its event.
    pub has_a_known_key: bool,
}

pub(crate) async fn list_of_run(
    loops: &LoopStore,
    run_id: Uuid,
) -> Result<Vec<ConflictRow>, StoreError> {
    loops
        .all(query(include_str!("verify_conflicts.sql")).bind(run_id))
        .await
}
