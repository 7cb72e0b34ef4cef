//! Plans, which the planner writes.

use servo_store::{LoopStore, StoreError, query};

use crate::core::PlanRef;

/// Returns the encoded plan if it is stored.
pub(crate) async fn read_plan(
    loops: &LoopStore,
    plan: &PlanRef,
) -> Result<Option<Vec<u8>>, StoreError> {
    let read = query(include_str!("read_plan.sql"))
        .bind(&plan.tenant)
        .bind(plan.workspace.as_str())
        .bind(plan.plan_id.as_bytes().as_slice());
    let rows: Vec<(Vec<u8>,)> = loops.all(read).await?;
    Ok(rows.into_iter().next().map(|(plan,)| plan))
}
