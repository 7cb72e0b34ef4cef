//! Partitions as callers see them: what the planner says of them, and what the scheduler's rows say.

use std::collections::{HashMap, HashSet};

use servo_mesh::Error;
use servo_model::states::{MaterializationState, TaskState};
use servo_model::{AttemptId, RunId};
use servo_proto::v1 as pb;
use servo_store::{TenantTx, Timestamp, query};
use uuid::Uuid;

use super::live_partitions::Place;
use super::{Scheduler, answer};
use crate::wire;

/// A partition that exists, as the planner names it.
pub(super) struct Named {
    pub(super) asset_key: String,
    pub(super) partition_key: String,
    pub(super) staleness: pb::PartitionStaleness,
}

/// Asset and key, newest attempt with time and state, version with time and code, their runs, and where the newest
/// attempt's output stands.
type Row = (
    String,
    String,
    Uuid,
    Timestamp,
    i16,
    Option<Uuid>,
    Option<Timestamp>,
    Option<String>,
    Option<Uuid>,
    Option<Uuid>,
    Option<i16>,
);

/// `live` are those that somebody works on.
pub(super) async fn show(
    scheduler: &Scheduler,
    (tenant, workspace): (&str, &str),
    live: &HashSet<Place>,
    named: Vec<Named>,
) -> Result<Vec<pb::Partition>, Error> {
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let mut tx = scheduler
        .store
        .requests()
        .begin(tenant)
        .await
        .map_err(answer::store)?;
    let known = known(&mut tx, tenant, workspace, &named).await?;
    tx.commit().await.map_err(answer::store)?;
    let partition = |named: Named| {
        let place = (named.asset_key, named.partition_key);
        partition(
            &place,
            known.get(&place),
            live.contains(&place),
            named.staleness,
        )
    };
    Ok(named.into_iter().map(partition).collect())
}

async fn known(
    tx: &mut TenantTx,
    tenant: &str,
    workspace: &str,
    named: &[Named],
) -> Result<HashMap<Place, Row>, Error> {
    let select = query(include_str!("../store/partitions_of.sql"))
        .bind(tenant)
        .bind(workspace)
        .bind(
            named
                .iter()
                .map(|named| named.asset_key.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(
            named
                .iter()
                .map(|named| named.partition_key.as_str())
                .collect::<Vec<_>>(),
        );
    let rows: Vec<Row> = tx.all(select).await.map_err(answer::store)?;
    Ok(rows
        .into_iter()
        .map(|row| ((row.0.clone(), row.1.clone()), row))
        .collect())
}

fn partition(
    (asset_key, partition_key): &Place,
    row: Option<&Row>,
    is_live: bool,
    stale: pb::PartitionStaleness,
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
    let (
        ..,
        attempt,
        attempted_at,
        attempt_state,
        version,
        made_at,
        code,
        attempted_by,
        made_by,
        _,
    ) = row;
    let attempt_id = |id: &Uuid| AttemptId::from_bytes(*id.as_bytes()).to_string();
    let run_id = |id: &Option<Uuid>| {
        id.map_or_else(String::new, |id| {
            RunId::from_bytes(*id.as_bytes()).to_string()
        })
    };
    pb::Partition {
        state: state(row, is_live, !stale.causes.is_empty()).into(),
        materialization_id: version.as_ref().map(attempt_id).unwrap_or_default(),
        materialize_time: made_at.map(|at| wire::timestamp(at.unix_us())),
        materialize_run_id: run_id(made_by),
        code_version: code.clone().unwrap_or_default(),
        last_attempt_id: attempt_id(attempt),
        last_attempt_time: Some(wire::timestamp(attempted_at.unix_us())),
        last_attempt_run_id: run_id(attempted_by),
        last_attempt_outcome: outcome(*attempt_state).into(),
        stale_since: stale.stale_since,
        stale_causes: stale.causes,
        ..bare
    }
}

fn state(row: &Row, is_live: bool, is_stale: bool) -> pb::PartitionState {
    let (.., attempt_state, version, _, _, _, _, newest) = row;
    match version {
        _ if is_live => pb::PartitionState::InProgress,
        _ if *attempt_state == TaskState::Failed.code() => pb::PartitionState::Failed,
        _ if *newest == Some(MaterializationState::Quarantined.code()) => {
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
