//! Materializations.

use std::collections::HashMap;

use servo_model::states::MaterializationState;
use servo_model::{AttemptId, RunId, TenantId, Timestamp};
use servo_store::sqlx::FromRow;
use servo_store::{LoopStore, StoreError, TenantTx, query};
use uuid::Uuid;

use crate::core::Resolvable;

/// A materialization as lists show it.
#[derive(Debug, FromRow)]
pub(crate) struct ListedMaterialization {
    pub attempt_id: Uuid,
    pub asset_key: String,
    pub ordinal: i32,
    pub item: i32,
    pub state: i16,
    /// Counts changes, from 0.
    pub version: i64,
    pub recorded_at: Timestamp,
    pub promoted_at: Option<Timestamp>,
    pub output: Vec<u8>,
    pub run_id: Uuid,
    pub deployment_id: Option<String>,
    pub plan_id: Option<Vec<u8>>,
    /// The actor who resolved its quarantine, encoded.
    pub resolved_by: Option<Vec<u8>>,
    pub resolved_event: Option<Uuid>,
}

/// The last row of a page: when it was recorded, its attempt, its asset.
pub(crate) type MaterializationCursor = (Timestamp, Uuid, String);

/// The index by which a list of materializations is read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MaterializationIndex<'a> {
    Run(RunId),
    Asset(&'a str),
    Quarantined,
    All,
}

/// Lists the materializations before the cursor.
pub(crate) async fn list(
    tx: &mut TenantTx,
    (tenant, workspace): (&TenantId, &str),
    index: MaterializationIndex<'_>,
    (at, attempt, asset): &MaterializationCursor,
    limit: usize,
) -> Result<Vec<ListedMaterialization>, StoreError> {
    let statement = match &index {
        MaterializationIndex::Run(_) => include_str!("list_materializations_of_run.sql"),
        MaterializationIndex::Asset(_) => include_str!("list_materializations_of_asset.sql"),
        MaterializationIndex::Quarantined => include_str!("list_quarantined.sql"),
        MaterializationIndex::All => include_str!("list_materializations.sql"),
    };
    let select = query(statement)
        .bind(tenant)
        .bind(workspace)
        .bind(*at)
        .bind(*attempt)
        .bind(asset)
        .bind(limit as i64);
    let select = match index {
        MaterializationIndex::Run(run) => select.bind(Uuid::from_bytes(*run.as_bytes())),
        MaterializationIndex::Asset(asset) => select.bind(asset.to_owned()),
        MaterializationIndex::Quarantined | MaterializationIndex::All => select,
    };
    tx.all(select).await
}

pub(crate) async fn find(
    tx: &mut TenantTx,
    (tenant, workspace): (&TenantId, &str),
    attempt: AttemptId,
) -> Result<Option<ListedMaterialization>, StoreError> {
    let select = query(include_str!("find_materialization.sql"))
        .bind(tenant)
        .bind(workspace)
        .bind(Uuid::from_bytes(*attempt.as_bytes()));
    let rows: Vec<ListedMaterialization> = tx.all(select).await?;
    Ok(rows.into_iter().next())
}

/// The state and version of the materializations of these attempts.
pub(crate) async fn find_resolvable(
    loops: &LoopStore,
    attempts: Vec<Uuid>,
) -> Result<HashMap<AttemptId, Resolvable>, StoreError> {
    let rows: Vec<(Uuid, i16, i64)> = loops
        .all(query(include_str!("resolvable.sql")).bind(attempts))
        .await?;
    let resolvable = |(attempt, state, changes): (Uuid, i16, i64)| {
        let state = MaterializationState::from_code(state)?;
        let version = u64::try_from(changes).ok()? + 1;
        Some((
            AttemptId::from_bytes(attempt.into_bytes()),
            Resolvable { state, version },
        ))
    };
    Ok(rows.into_iter().filter_map(resolvable).collect())
}

/// A row of `scheduler.materializations`.
#[derive(Debug, FromRow)]
pub(crate) struct MaterializationRow {
    pub attempt_id: Uuid,
    pub asset_key: String,
    pub partition_key: String,
    pub tenant: TenantId,
    pub workspace: String,
    pub run_number: i64,
    pub ordinal: i32,
    pub item: i32,
    pub recorded_at: Timestamp,
    pub output: Vec<u8>,
    #[sqlx(flatten)]
    pub status: VersionStatus,
}

/// The columns that resolving a quarantine changes.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct VersionStatus {
    pub state: i16,
    pub version: i64,
    pub promoted_at: Option<Timestamp>,
    pub resolved_by: Option<Vec<u8>>,
    pub resolved_event: Option<Uuid>,
}

pub(crate) async fn list_of_attempts(
    loops: &LoopStore,
    attempts: Vec<Uuid>,
) -> Result<Vec<MaterializationRow>, StoreError> {
    loops
        .all(query(include_str!("verify_materializations.sql")).bind(attempts))
        .await
}
