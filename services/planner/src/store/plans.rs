//! Plans by id.

use prost::Message;
use servo_model::plan::PlanId;
use servo_proto::v1::Plan;
use servo_store::{LoopStore, StoreError, Tx, query};

use super::deployments::{columns, decode_error};
use super::{Scope, scoped};

/// A plan to store.
pub(crate) struct NewPlan {
    pub(crate) scope: Scope,
    pub(crate) id: PlanId,
    pub(crate) bytes: Vec<u8>,
}

/// Stores plans in one statement. They are sorted, so that two callers with the same plans cannot
/// deadlock.
pub(crate) async fn insert(store: &LoopStore, mut plans: Vec<NewPlan>) -> Result<(), StoreError> {
    plans.sort_unstable_by(|a, b| (&a.scope, a.id).cmp(&(&b.scope, b.id)));
    plans.dedup_by(|a, b| a.id == b.id && a.scope == b.scope);
    if plans.is_empty() {
        return Ok(());
    }
    let (tenants, workspaces) = columns(plans.iter().map(|plan| &plan.scope));
    let ids: Vec<Vec<u8>> = plans
        .iter()
        .map(|plan| plan.id.digest().as_bytes().to_vec())
        .collect();
    let bytes: Vec<Vec<u8>> = plans.into_iter().map(|plan| plan.bytes).collect();
    let statement = query(include_str!("sql/insert_plans.sql"))
        .bind(tenants)
        .bind(workspaces)
        .bind(ids)
        .bind(bytes);
    store.execute(statement).await.map(drop)
}

pub(crate) async fn find(
    tx: &mut Tx,
    scope: &Scope,
    id: &PlanId,
) -> Result<Option<Plan>, StoreError> {
    let statement = scoped!("find_plan", scope).bind(id.digest().as_bytes().as_slice());
    let row: Option<(Vec<u8>,)> = tx.optional(statement).await?;
    row.map(|(bytes,)| Plan::decode(bytes.as_slice()).map_err(decode_error))
        .transpose()
}
