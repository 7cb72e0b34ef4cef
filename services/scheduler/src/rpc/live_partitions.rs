//! Which partitions somebody works on just now: the tasks of the workspace's open runs that have an attempt.

use std::collections::{BTreeMap, HashSet};

use servo_mesh::Error;
use servo_model::Operation;
use servo_store::query;

use super::{Scheduler, answer};
use crate::core::Plan;

/// Asset and partition.
pub(super) type Place = (String, String);

/// All of the workspace.
pub(super) async fn find(
    scheduler: &Scheduler,
    tenant: &str,
    workspace: &str,
) -> Result<HashSet<Place>, Error> {
    let mut tx = scheduler
        .store
        .requests()
        .begin(tenant)
        .await
        .map_err(answer::store)?;
    let select = query(include_str!("../store/live_tasks.sql"))
        .bind(tenant)
        .bind(workspace);
    let rows: Vec<(Vec<u8>, i32)> = tx.all(select).await.map_err(answer::store)?;
    tx.commit().await.map_err(answer::store)?;
    let mut live: BTreeMap<[u8; 32], Vec<i32>> = BTreeMap::new();
    for (plan_id, ordinal) in rows {
        let Ok(plan_id) = <[u8; 32]>::try_from(plan_id.as_slice()) else {
            continue;
        };
        live.entry(plan_id).or_default().push(ordinal);
    }
    let mut places = HashSet::new();
    for (plan_id, ordinals) in live {
        let plan = scheduler
            .plans
            .find(scheduler.store.loops(), tenant, workspace, plan_id)
            .await;
        let Some(plan) = plan.map_err(answer::store)? else {
            continue;
        };
        places.extend(
            ordinals
                .into_iter()
                .flat_map(|ordinal| made(&plan, ordinal)),
        );
    }
    Ok(places)
}

/// What a task makes: nothing, for a check.
fn made(plan: &Plan, ordinal: i32) -> Vec<Place> {
    let ordinal = ordinal.unsigned_abs();
    let Some(task) = plan.tasks.get(ordinal as usize) else {
        return Vec::new();
    };
    if task.key.operation() != Operation::Materialize {
        return Vec::new();
    }
    let settings = plan.settings(ordinal);
    let assets = std::iter::once(&settings.asset_key).chain(&settings.also_makes);
    assets
        .map(|asset| (asset.to_string(), task.partition_key.to_string()))
        .collect()
}
