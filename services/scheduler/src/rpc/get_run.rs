//! GetRun: one run as its rows tell it, with its history if that is asked for.

use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_proto::v1 as pb;
use servo_store::{TenantTx, query};
use uuid::Uuid;

use super::{Scheduler, answer, story, wait};
use crate::core::Plan;
use crate::wire::{self, RunRecord};

pub(super) async fn get_run(
    scheduler: &Scheduler,
    request: pb::GetRunRequest,
) -> Result<pb::GetRunResponse, Error> {
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let mut tx = scheduler
        .store
        .requests()
        .begin(&request.tenant)
        .await
        .map_err(answer::store)?;
    let row = row(&mut tx, &request.workspace, &request.run_id).await?;
    let run = show(&mut tx, &row).await?;
    let history = match request.include_history {
        true => {
            let plan = plan(scheduler, &request.tenant, &request.workspace, &row).await?;
            story::read(&mut tx, &row, plan.as_ref(), None).await?.run
        }
        false => Vec::new(),
    };
    tx.commit().await.map_err(answer::store)?;
    Ok(pb::GetRunResponse {
        run: Some(run),
        history,
    })
}

/// The run, if it exists in this tenant and workspace.
pub(super) async fn find(
    scheduler: &Scheduler,
    tenant: &str,
    workspace: &str,
    run_id: &str,
) -> Result<pb::Run, Error> {
    let mut tx = scheduler
        .store
        .requests()
        .begin(tenant)
        .await
        .map_err(answer::store)?;
    let row = row(&mut tx, workspace, run_id).await?;
    let run = show(&mut tx, &row).await?;
    tx.commit().await.map_err(answer::store)?;
    Ok(run)
}

pub(super) async fn row(
    tx: &mut TenantTx,
    workspace: &str,
    run_id: &str,
) -> Result<RunRecord, Error> {
    let id = answer::run_id(run_id)?;
    let select = query(include_str!("../store/run.sql"))
        .bind(Uuid::from_bytes(*id.as_bytes()))
        .bind(workspace);
    let row: Option<RunRecord> = tx.optional(select).await.map_err(answer::store)?;
    row.ok_or_else(|| answer::run_not_found(run_id))
}

/// The run's plan; none before it has one.
pub(super) async fn plan(
    scheduler: &Scheduler,
    tenant: &str,
    workspace: &str,
    row: &RunRecord,
) -> Result<Option<Arc<Plan>>, Error> {
    let Some(plan_id) = row
        .plan_id
        .as_deref()
        .and_then(|id| <[u8; 32]>::try_from(id).ok())
    else {
        return Ok(None);
    };
    let plan = scheduler
        .plans
        .find(scheduler.store.loops(), tenant, workspace, plan_id)
        .await;
    let missing = || Error::new(Reason::PlanNotFound, "the run's plan is no longer stored");
    Ok(Some(plan.map_err(answer::store)?.ok_or_else(missing)?))
}

async fn show(tx: &mut TenantTx, row: &RunRecord) -> Result<pb::Run, Error> {
    let counts: Vec<(i16, i64)> = match row.counts {
        Some(_) => Vec::new(),
        None => {
            let count = query(include_str!("../store/count_tasks.sql")).bind(row.run_number);
            tx.all(count).await.map_err(answer::store)?
        }
    };
    Ok(wire::run_to_proto(row, &counts))
}
