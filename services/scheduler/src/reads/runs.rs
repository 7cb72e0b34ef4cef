//! Single runs.

use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::TenantId;
use servo_proto::v1 as pb;
use servo_store::TenantTx;

use super::{Reads, errors};
use crate::core::Plan;
use crate::store::runs::{self, RunRecord};
use crate::store::tasks;
use crate::wire;

/// Finds a run of this tenant and workspace.
pub(crate) async fn find(
    reads: &Reads,
    tenant: &TenantId,
    workspace: &str,
    run_id: &str,
) -> Result<pb::Run, Error> {
    let mut tx = reads
        .store
        .requests()
        .begin(tenant)
        .await
        .map_err(errors::store)?;
    let record = find_record(&mut tx, workspace, run_id).await?;
    let run = to_proto(&mut tx, &record).await?;
    tx.commit().await.map_err(errors::store)?;
    Ok(run)
}

pub(crate) async fn find_record(
    tx: &mut TenantTx,
    workspace: &str,
    run_id: &str,
) -> Result<RunRecord, Error> {
    let missing = || errors::run_not_found(run_id);
    let id = run_id.parse().map_err(|_| missing())?;
    let record = runs::find(tx, workspace, id).await.map_err(errors::store)?;
    record.ok_or_else(missing)
}

/// The plan of a run; `None` while it has none.
pub(crate) async fn find_plan(
    reads: &Reads,
    tenant: &TenantId,
    workspace: &str,
    record: &RunRecord,
) -> Result<Option<Arc<Plan>>, Error> {
    let Some(plan_id) = record
        .plan_id
        .as_deref()
        .and_then(|id| <[u8; 32]>::try_from(id).ok())
    else {
        return Ok(None);
    };
    let plan = reads
        .plans
        .find(reads.store.loops(), tenant, workspace, plan_id)
        .await;
    let missing = || Error::new(Reason::PlanNotFound, "the run's plan is no longer stored");
    Ok(Some(plan.map_err(errors::store)?.ok_or_else(missing)?))
}

pub(crate) async fn to_proto(tx: &mut TenantTx, record: &RunRecord) -> Result<pb::Run, Error> {
    let counts = match record.counts {
        Some(_) => Vec::new(),
        None => tasks::count_by_state(tx, record.run_number)
            .await
            .map_err(errors::store)?,
    };
    Ok(wire::run_to_proto(record, &counts))
}
