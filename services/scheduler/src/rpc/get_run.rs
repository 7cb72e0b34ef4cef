//! GetRun: one run as its rows tell it.

use servo_mesh::Error;
use servo_proto::v1;
use servo_store::{TenantTx, query};
use uuid::Uuid;

use super::{Scheduler, answer};
use crate::wire::{self, RunRow};

pub(super) async fn get_run(
    scheduler: &Scheduler,
    asked: v1::GetRunRequest,
) -> Result<v1::GetRunResponse, Error> {
    let run = find(scheduler, &asked.tenant, &asked.workspace, &asked.run_id).await?;
    Ok(v1::GetRunResponse { run: Some(run), history: Vec::new() })
}

/// The run, if it exists in this tenant and workspace.
pub(super) async fn find(
    scheduler: &Scheduler,
    tenant: &str,
    workspace: &str,
    run_id: &str,
) -> Result<v1::Run, Error> {
    let mut tx = scheduler.store.requests().begin(tenant).await.map_err(answer::store)?;
    let row = row(&mut tx, workspace, run_id).await?;
    let counts = match row.counts {
        Some(_) => Vec::new(),
        None => tx
            .all(query(include_str!("../store/count_tasks.sql")).bind(row.run_number))
            .await
            .map_err(answer::store)?,
    };
    tx.commit().await.map_err(answer::store)?;
    Ok(wire::run_to_proto(&row, &counts))
}

pub(super) async fn row(tx: &mut TenantTx, workspace: &str, run_id: &str) -> Result<RunRow, Error> {
    let id = answer::run_id(run_id)?;
    let select =
        query(include_str!("../store/run.sql")).bind(Uuid::from_bytes(*id.as_bytes())).bind(workspace);
    let row: Option<RunRow> = tx.optional(select).await.map_err(answer::store)?;
    row.ok_or_else(|| answer::run_not_found(run_id))
}
