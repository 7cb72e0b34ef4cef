//! The partitions that attempts write now: those of the workspace's tasks with an attempt in
//! flight.

use std::collections::{BTreeMap, HashSet};

use servo_mesh::Error;
use servo_model::{Operation, TenantId};

use super::{Reads, errors};
use crate::core::Plan;
use crate::store::partitions::AssetPartition;
use crate::store::tasks;

/// Finds all live partitions of the workspace.
pub(crate) async fn find(
    reads: &Reads,
    tenant: &TenantId,
    workspace: &str,
) -> Result<HashSet<AssetPartition>, Error> {
    let mut tx = reads
        .store
        .requests()
        .begin(tenant)
        .await
        .map_err(errors::store)?;
    let rows = tasks::list_live(&mut tx, tenant, workspace)
        .await
        .map_err(errors::store)?;
    tx.commit().await.map_err(errors::store)?;
    let mut live: BTreeMap<[u8; 32], Vec<i32>> = BTreeMap::new();
    for (plan_id, ordinal) in rows {
        let Ok(plan_id) = <[u8; 32]>::try_from(plan_id.as_slice()) else {
            continue;
        };
        live.entry(plan_id).or_default().push(ordinal);
    }
    let mut partitions = HashSet::new();
    for (plan_id, ordinals) in live {
        let plan = reads
            .plans
            .find(reads.store.loops(), tenant, workspace, plan_id)
            .await;
        let Some(plan) = plan.map_err(errors::store)? else {
            continue;
        };
        partitions.extend(
            ordinals
                .into_iter()
                .flat_map(|ordinal| written_by(&plan, ordinal)),
        );
    }
    Ok(partitions)
}

/// The partitions that a task writes; none for a check.
fn written_by(plan: &Plan, ordinal: i32) -> Vec<AssetPartition> {
    let ordinal = ordinal.unsigned_abs();
    let Some(task) = plan.tasks.get(ordinal as usize) else {
        return Vec::new();
    };
    if task.key.operation() != Operation::Materialize {
        return Vec::new();
    }
    plan.settings(ordinal)
        .makes()
        .map(|asset| (asset.to_string(), task.partition_key.to_string()))
        .collect()
}
