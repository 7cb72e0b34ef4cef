//! The requirements of a task on workers and limits, derived from its plan.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_model::{Digest, TaskKey, TaskRef, TenantId, WorkspaceId};

/// The identity of a stored plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanRef {
    pub tenant: TenantId,
    pub workspace: WorkspaceId,
    pub plan_id: Digest,
}

/// Everything that decides whether and where a task may run. Tasks with the same demand share a
/// ready queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Demand {
    pub workspace: WorkspaceId,
    /// The pool that the task takes a slot from.
    pub pool: Option<Arc<str>>,
    pub capabilities: BTreeSet<Arc<str>>,
    /// The handler that the worker must have registered.
    pub handler: Option<Arc<str>>,
    pub resources: Resources,
}

/// Machine resources. For CPU and memory of a worker, 0 means unspecified; 0 GPUs means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Resources {
    pub cpu_millicores: u64,
    pub memory_bytes: u64,
    pub gpus: u32,
}

impl Resources {
    /// Returns whether a task that needs `needed` fits into these resources.
    pub fn holds(&self, needed: &Resources) -> bool {
        let fits = |has: u64, needs: u64| has == 0 || needs <= has;
        fits(self.cpu_millicores, needed.cpu_millicores)
            && fits(self.memory_bytes, needed.memory_bytes)
            && needed.gpus <= self.gpus
    }
}

/// The part of a plan that admission needs.
#[derive(Debug)]
pub struct AdmissionPlan {
    /// Demand and priority of each asset.
    pub assets: Vec<(Arc<Demand>, i32)>,
    /// In the order of the plan.
    pub tasks: Vec<AdmissionTask>,
}

#[derive(Debug)]
pub struct AdmissionTask {
    /// Index into [`AdmissionPlan::assets`].
    pub asset: u32,
    pub key: TaskKey,
}

impl AdmissionPlan {
    /// Returns the index of the task's asset, its demand and its priority; `None` when the plan has
    /// no such task.
    pub fn asset_of(&self, task: TaskRef) -> Option<(u32, &Arc<Demand>, i32)> {
        let asset = self.tasks.get(task.ordinal as usize)?.asset;
        let (demand, priority) = self.assets.get(asset as usize)?;
        Some((asset, demand, *priority))
    }

    /// Returns the task's key. The plan has the key of a mapped parent; that of a mapped task is
    /// derived from it and the index of its item.
    pub fn key(&self, task: TaskRef) -> Option<TaskKey> {
        let key = &self.tasks.get(task.ordinal as usize)?.key;
        Some(
            task.map_index
                .map_or_else(|| key.clone(), |index| key.child(index)),
        )
    }
}
