//! Check results.

use servo_model::{RunId, TenantId, Timestamp};
use servo_store::sqlx::FromRow;
use servo_store::{LoopStore, StoreError, TenantTx, query};
use uuid::Uuid;

/// A check result as lists show it.
#[derive(Debug, FromRow)]
pub(crate) struct ListedCheck {
    pub attempt_id: Uuid,
    /// The index of the check among those of the attempt.
    #[sqlx(rename = "place")]
    pub index: i16,
    pub asset_key: String,
    pub partition_key: String,
    pub ordinal: i32,
    pub item: i32,
    pub recorded_at: Timestamp,
    pub result: Vec<u8>,
    pub run_id: Uuid,
    pub plan_id: Option<Vec<u8>>,
}

/// The last row of a page: when it was recorded, its attempt, its index.
pub(crate) type CheckCursor = (Timestamp, Uuid, i16);

/// The index by which a list of check results is read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CheckIndex<'a> {
    Run(RunId),
    Asset(&'a str),
    Failed,
    All,
}

/// Lists the results before the cursor.
pub(crate) async fn list(
    tx: &mut TenantTx,
    (tenant, workspace): (&TenantId, &str),
    index: CheckIndex<'_>,
    (at, attempt, check): CheckCursor,
    limit: usize,
) -> Result<Vec<ListedCheck>, StoreError> {
    let statement = match &index {
        CheckIndex::Run(_) => include_str!("list_checks_of_run.sql"),
        CheckIndex::Asset(_) => include_str!("list_checks_of_asset.sql"),
        CheckIndex::Failed => include_str!("list_failed_checks.sql"),
        CheckIndex::All => include_str!("list_checks.sql"),
    };
    let select = query(statement)
        .bind(tenant)
        .bind(workspace)
        .bind(at)
        .bind(attempt)
        .bind(check)
        .bind(limit as i64);
    let select = match index {
        CheckIndex::Run(run) => select.bind(Uuid::from_bytes(*run.as_bytes())),
        CheckIndex::Asset(asset) => select.bind(asset.to_owned()),
        CheckIndex::Failed | CheckIndex::All => select,
    };
    tx.all(select).await
}

/// A row of `scheduler.check_results`.
#[derive(Debug, FromRow)]
pub(crate) struct CheckRow {
    pub attempt_id: Uuid,
    #[sqlx(rename = "place")]
    pub index: i16,
    pub tenant: TenantId,
    pub workspace: String,
    pub asset_key: String,
    pub partition_key: String,
    pub name: String,
    pub passed: bool,
    pub severity: i16,
    pub ordinal: i32,
    pub item: i32,
    pub recorded_at: Timestamp,
    pub result: Vec<u8>,
}

pub(crate) async fn list_of_run(
    loops: &LoopStore,
    run_number: i64,
) -> Result<Vec<CheckRow>, StoreError> {
    loops
        .all(query(include_str!("verify_checks.sql")).bind(run_number))
        .await
}
