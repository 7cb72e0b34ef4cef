//! The names of tasks in lists that reach over many runs: their plans are looked up once each.

use std::collections::HashMap;
use std::sync::Arc;

use servo_mesh::Error;
use servo_model::TaskKey;

use super::{Scheduler, answer};
use crate::core::{Graph, Slot};
use crate::wire;

#[derive(Default)]
pub(super) struct TaskNames(HashMap<[u8; 32], Option<Arc<Graph>>>);

impl TaskNames {
    /// `None` for a plan that is no longer stored: it takes the names of its tasks along.
    pub(super) async fn find(
        &mut self,
        scheduler: &Scheduler,
        (tenant, workspace): (&str, &str),
        plan_id: Option<&[u8]>,
        (ordinal, item): (i32, i32),
    ) -> Result<Option<TaskKey>, Error> {
        let Some(plan_id) = plan_id.and_then(|id| <[u8; 32]>::try_from(id).ok()) else {
            return Ok(None);
        };
        let graph = match self.0.get(&plan_id) {
            Some(known) => known.clone(),
            None => {
                let found = scheduler
                    .plans
                    .find(scheduler.store.loops(), tenant, workspace, plan_id)
                    .await;
                let found = found.map_err(answer::store)?;
                self.0.insert(plan_id, found.clone());
                found
            }
        };
        let slot = Slot {
            ordinal: ordinal.unsigned_abs(),
            item: u32::try_from(item).ok(),
        };
        let graph = graph.filter(|graph| (slot.ordinal as usize) < graph.tasks.len());
        Ok(graph.map(|graph| wire::task_key(&graph, slot)))
    }
}
