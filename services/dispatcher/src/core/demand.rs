//! What tasks ask of workers and limits, taken from their plan.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_model::{Digest, TaskKey, TenantId, WorkspaceId};

/// Names a stored plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanRef {
    pub tenant: TenantId,
    pub workspace: WorkspaceId,
    pub plan_id: Digest,
}

/// A task inside its run; ordered as the plan orders its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Task {
    pub ordinal: u32,
    pub map_index: Option<u32>,
}

/// Everything that decides whether and where a task may run. Tasks with the same demand wait in one lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Demand {
    pub workspace: WorkspaceId,
    /// The pool it takes a slot from.
    pub pool: Option<Arc<str>>,
    pub capabilities: BTreeSet<Arc<str>>,
    /// The handler that the worker must bring along.
    pub handler: Option<Arc<str>>,
    pub room: Room,
}

/// Machine resources; for a worker 0 means that it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Room {
    pub cpu_millicores: u64,
    pub memory_bytes: u64,
    pub gpus: u32,
}

impl Room {
    /// Whether a task that needs `needed` fits at all.
    pub fn holds(&self, needed: &Room) -> bool {
        let fits = |has: u64, needs: u64| has == 0 || needs <= has;
        fits(self.cpu_millicores, needed.cpu_millicores)
            && fits(self.memory_bytes, needed.memory_bytes)
            && needed.gpus <= self.gpus
    }
}

/// What admission needs to know of a plan.
#[derive(Debug)]
pub struct Shape {
    /// Demand and priority, once per asset.
    pub assets: Vec<(Arc<Demand>, i32)>,
    /// In the plan's order.
    pub tasks: Vec<ShapedTask>,
}

#[derive(Debug)]
pub struct ShapedTask {
    /// Index into the assets.
    pub asset: u32,
    pub key: TaskKey,
}

impl Shape {
    /// The index of the task's asset with its demand and priority; `None` when the plan has no such task.
    pub fn asset_of(&self, task: Task) -> Option<(u32, &Arc<Demand>, i32)> {
        let asset = self.tasks.get(task.ordinal as usize)?.asset;
        let (demand, priority) = self.assets.get(asset as usize)?;
        Some((asset, demand, *priority))
    }

    /// The task's key; that of the child for an item of a mapped task.
    pub fn key(&self, task: Task) -> Option<TaskKey> {
        let key = &self.tasks.get(task.ordinal as usize)?.key;
        Some(
            task.map_index
                .map_or_else(|| key.clone(), |index| key.child(index)),
        )
    }
}
