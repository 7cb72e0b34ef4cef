//! Plans that the planner stored.

use servo_model::TenantId;
use servo_store::{LoopStore, StoreError, query};

/// Which plan, and whose.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlanLocation {
    pub plan_id: [u8; 32],
    pub tenant: TenantId,
    pub workspace: String,
}

/// Returns the encoded plans that exist.
pub(crate) async fn find(
    loops: &LoopStore,
    plans: &[PlanLocation],
) -> Result<Vec<Vec<u8>>, StoreError> {
    let tenants: Vec<&str> = plans.iter().map(|plan| plan.tenant.as_str()).collect();
    let workspaces: Vec<&str> = plans.iter().map(|plan| plan.workspace.as_str()).collect();
    let ids: Vec<&[u8]> = plans.iter().map(|plan| plan.plan_id.as_slice()).collect();
    let select = query(include_str!("find_plans.sql"))
        .bind(tenants)
        .bind(workspaces)
        .bind(ids);
    let rows: Vec<(Vec<u8>,)> = loops.all(select).await?;
    Ok(rows.into_iter().map(|(plan,)| plan).collect())
}
