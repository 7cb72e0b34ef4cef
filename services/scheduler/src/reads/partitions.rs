//! Partitions as the API shows them: the planner's staleness and the facts of the scheduler's rows.

use std::collections::{HashMap, HashSet};

use servo_mesh::Error;
use servo_model::states::{MaterializationState, TaskState};
use servo_model::{AttemptId, RunId, TenantId};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::{proto_time, v1 as pb};
use servo_store::TenantTx;
use uuid::Uuid;

use super::{Reads, errors};
use crate::store::partitions::{self, AssetPartition, ListedPartition};

/// A partition that exists, with its staleness as the planner computes it.
pub(crate) struct NamedPartition {
    pub(crate) asset_key: String,
    pub(crate) partition_key: String,
    pub(crate) staleness: mesh_pb::PartitionStaleness,
}

/// Shows the named partitions. `live` are those with an attempt in flight.
pub(crate) async fn show(
    reads: &Reads,
    (tenant, workspace): (&TenantId, &str),
    live: &HashSet<AssetPartition>,
    named: Vec<NamedPartition>,
) -> Result<Vec<pb::Partition>, Error> {
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let mut tx = reads
        .store
        .requests()
        .begin(tenant)
        .await
        .map_err(errors::store)?;
    let stored = stored(&mut tx, (tenant, workspace), &named).await?;
    tx.commit().await.map_err(errors::store)?;
    let partition = |named: NamedPartition| {
        let key = (named.asset_key, named.partition_key);
        partition(&key, stored.get(&key), live.contains(&key), named.staleness)
    };
    Ok(named.into_iter().map(partition).collect())
}

async fn stored(
    tx: &mut TenantTx,
    scope: (&TenantId, &str),
    named: &[NamedPartition],
) -> Result<HashMap<AssetPartition, ListedPartition>, Error> {
    let assets = named.iter().map(|named| named.asset_key.as_str());
    let keys = named.iter().map(|named| named.partition_key.as_str());
    let rows = partitions::list(tx, scope, assets.collect(), keys.collect())
        .await
        .map_err(errors::store)?;
    Ok(rows
        .into_iter()
        .map(|row| ((row.asset_key.clone(), row.partition_key.clone()), row))
        .collect())
}

fn partition(
    (asset_key, partition_key): &AssetPartition,
    row: Option<&ListedPartition>,
    is_live: bool,
    stale: mesh_pb::PartitionStaleness,
) -> pb::Partition {
    let bare = pb::Partition {
        asset_key: asset_key.clone(),
        partition_key: partition_key.clone(),
        ..Default::default()
    };
    let Some(row) = row else {
        let state = if is_live {
            pb::PartitionState::InProgress
        } else {
            pb::PartitionState::Missing
        };
        return pb::Partition {
            state: state.into(),
            ..bare
        };
    };
    let attempt_id = |id: &Uuid| AttemptId::from_bytes(*id.as_bytes()).to_string();
    let run_id = |id: &Option<Uuid>| {
        id.map_or_else(String::new, |id| {
            RunId::from_bytes(*id.as_bytes()).to_string()
        })
    };
    pb::Partition {
        state: state(row, is_live, !stale.causes.is_empty()).into(),
        materialization_id: row
            .materialization_id
            .as_ref()
            .map(attempt_id)
            .unwrap_or_default(),
        materialize_time: row.materialized_at.map(proto_time),
        materialize_run_id: run_id(&row.materialized_run_id),
        code_version: row.code_version.clone().unwrap_or_default(),
        last_attempt_id: attempt_id(&row.attempt_id),
        last_attempt_time: Some(proto_time(row.attempted_at)),
        last_attempt_run_id: run_id(&row.attempt_run_id),
        last_attempt_outcome: outcome(row.attempt_state).into(),
        stale_since: stale.stale_since,
        stale_causes: stale.causes,
        ..bare
    }
}

fn state(row: &ListedPartition, is_live: bool, is_stale: bool) -> pb::PartitionState {
    match row.materialization_id {
        _ if is_live => pb::PartitionState::InProgress,
        _ if row.attempt_state == TaskState::Failed.code() => pb::PartitionState::Failed,
        _ if row.newest_state == Some(MaterializationState::Quarantined.code()) => {
            pb::PartitionState::Quarantined
        }
        None => pb::PartitionState::Missing,
        Some(_) if is_stale => pb::PartitionState::Stale,
        Some(_) => pb::PartitionState::UpToDate,
    }
}

fn outcome(state: i16) -> pb::Outcome {
    match TaskState::from_code(state) {
        Some(TaskState::Succeeded) => pb::Outcome::Succeeded,
        Some(TaskState::Failed) => pb::Outcome::Failed,
        Some(TaskState::Skipped) => pb::Outcome::Skipped,
        Some(TaskState::Cancelled) => pb::Outcome::Cancelled,
        _ => pb::Outcome::Unspecified,
    }
}
