//! A plan as it is kept in memory, decoded once.

use std::collections::HashMap;
use std::sync::Arc;

use servo_model::{AttemptId, TaskKey, TenantId};
use servo_proto::v1 as pb;
use uuid::Uuid;

use crate::core::AdmissionPlan;

#[derive(Debug)]
pub(crate) struct StoredPlan {
    pub(crate) tenant: TenantId,
    pub(crate) plan: pb::Plan,
    pub(crate) pinned: PinnedVersions,
    /// The part that admission needs.
    pub(crate) admission: Arc<AdmissionPlan>,
    /// Estimated memory.
    pub(crate) bytes: usize,
}

impl StoredPlan {
    pub(crate) fn task(&self, ordinal: u32) -> Option<&pb::PlannedTask> {
        self.plan.tasks.get(ordinal as usize)
    }

    pub(crate) fn asset_of(&self, task: &pb::PlannedTask) -> Option<&pb::PlannedAsset> {
        self.plan.assets.get(task.asset as usize)
    }

    pub(crate) fn asset_key(&self, ordinal: u32) -> Option<&str> {
        let asset = self.asset_of(self.task(ordinal)?)?;
        Some(&asset.asset_key)
    }
}

/// For each asset and partition the version that a retry takes over from the run it repeats.
pub(crate) type PinnedVersions = HashMap<(String, String), Uuid>;

pub(crate) fn pinned_versions(plan: &pb::Plan) -> PinnedVersions {
    let pins = |reused: &pb::ReusedOutput| {
        let key: TaskKey = reused.task_key.parse().ok()?;
        let attempt: AttemptId = reused.materialization_id.parse().ok()?;
        let attempt = Uuid::from_bytes(*attempt.as_bytes());
        let partition = key.partition().map(ToString::to_string).unwrap_or_default();
        let assets =
            std::iter::once(key.asset().canonical()).chain(reused.also_made.iter().cloned());
        Some(
            assets
                .map(|asset| ((asset, partition.clone()), attempt))
                .collect::<Vec<_>>(),
        )
    };
    plan.reused.iter().filter_map(pins).flatten().collect()
}
