//! Task keys in lists over many runs; each plan is looked up once.

use std::collections::HashMap;
use std::sync::Arc;

use servo_mesh::Error;
use servo_model::{TaskKey, TaskRef, TenantId};

use super::{Reads, errors};
use crate::core::Plan;

#[derive(Default)]
pub(crate) struct TaskNames(HashMap<[u8; 32], Option<Arc<Plan>>>);

impl TaskNames {
    /// `None` when the plan is no longer stored.
    pub(crate) async fn find(
        &mut self,
        reads: &Reads,
        (tenant, workspace): (&TenantId, &str),
        plan_id: Option<&[u8]>,
        (ordinal, item): (i32, i32),
    ) -> Result<Option<TaskKey>, Error> {
        let Some(plan_id) = plan_id.and_then(|id| <[u8; 32]>::try_from(id).ok()) else {
            return Ok(None);
        };
        let plan = match self.0.get(&plan_id) {
            Some(known) => known.clone(),
            None => {
                let found = reads
                    .plans
                    .find(reads.store.loops(), tenant, workspace, plan_id)
                    .await;
                let found = found.map_err(errors::store)?;
                self.0.insert(plan_id, found.clone());
                found
            }
        };
        let task_ref = TaskRef {
            ordinal: ordinal.unsigned_abs(),
            map_index: u32::try_from(item).ok(),
        };
        let plan = plan.filter(|plan| (task_ref.ordinal as usize) < plan.tasks.len());
        Ok(plan.map(|plan| plan.task_key(task_ref)))
    }
}
