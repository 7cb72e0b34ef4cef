//! Runs by their id or by the request that created them.

use servo_model::{RunId, TenantId};
use servo_store::sqlx::FromRow;
use servo_store::{LoopStore, StoreError, query};
use uuid::Uuid;

/// A run by its id, and by the request id of the call that may have created another run.
#[derive(Debug)]
pub(crate) struct RunQuery {
    pub tenant: TenantId,
    pub workspace: String,
    pub run_id: RunId,
    pub request_id: Option<String>,
}

/// A run that matches one of the queries.
#[derive(Debug, FromRow)]
pub(crate) struct FoundRun {
    /// The number of the query, from 1.
    pub number: i64,
    pub by_request: bool,
    pub run_id: Uuid,
    pub run_number: i64,
    pub state: i16,
    /// RunRequested, encoded.
    pub request: Vec<u8>,
    pub request_event_id: Uuid,
    pub plan_id: Option<Vec<u8>>,
    pub deployment_id: Option<String>,
}

/// Answers all queries with one statement.
pub(crate) async fn find(
    loops: &LoopStore,
    queries: &[RunQuery],
) -> Result<Vec<FoundRun>, StoreError> {
    let tenants: Vec<&str> = queries.iter().map(|run| run.tenant.as_str()).collect();
    let ids: Vec<Uuid> = queries
        .iter()
        .map(|run| Uuid::from_bytes(*run.run_id.as_bytes()))
        .collect();
    let workspaces: Vec<&str> = queries.iter().map(|run| run.workspace.as_str()).collect();
    let request_ids: Vec<Option<&str>> = queries
        .iter()
        .map(|run| run.request_id.as_deref())
        .collect();
    let select = query(include_str!("find_runs.sql"))
        .bind(tenants)
        .bind(ids)
        .bind(workspaces)
        .bind(request_ids);
    loops.all(select).await
}
