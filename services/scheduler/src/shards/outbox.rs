//! The bus messages of a flush: at most one per run, and none when nothing changed that consumers
//! follow.

use std::collections::HashMap;

use prost::Message as _;
use servo_model::states::{MaterializationState, TaskState};
use servo_model::{Position, ShardId, Timestamp};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::proto_time;
use uuid::Uuid;

use super::lane::Lane;
use crate::core::{Materialized, Promotion, Run, TaskChange};
use crate::store::flush::{ChangedRun, OutboxMessage};
use crate::wire;

impl Lane {
    /// The messages for the bus; none during a rebuild.
    pub(super) fn outbox_messages(
        &self,
        changed: &[ChangedRun<'_>],
        marks: &HashMap<ShardId, Position>,
        at: Timestamp,
    ) -> Vec<OutboxMessage> {
        if self.bus_doorbell.is_none() {
            return Vec::new();
        }
        let position = |run: &Run| marks.get(&run.header.run_id.shard()).copied();
        changed
            .iter()
            .filter_map(|changed| message(changed, position(changed.run)?, at))
            .collect()
    }
}

/// `position` is the watermark of the run's shard after the flush.
fn message(changed: &ChangedRun<'_>, position: Position, at: Timestamp) -> Option<OutboxMessage> {
    let ChangedRun {
        run,
        changes,
        new_row,
        ..
    } = changed;
    let failed: Vec<mesh_pb::FailedTask> = changes
        .history
        .iter()
        .filter_map(|change| failed_task(run, change))
        .collect();
    let made: Vec<mesh_pb::MadeVersion> = changes
        .materialized
        .iter()
        .filter_map(made_version)
        .collect();
    if new_row.is_none() && changes.run_history.is_empty() && failed.is_empty() && made.is_empty() {
        return None;
    }
    let header = &run.header;
    let message = mesh_pb::RunChanged {
        tenant: header.tenant.to_string(),
        workspace: header.workspace.to_string(),
        run_id: header.run_id.to_string(),
        shard: header.run_id.shard().into(),
        position: position.into(),
        created: new_row.is_some(),
        state: i32::from(run.state.code()),
        reason: i32::from(run.reason.code()),
        failed_tasks: failed,
        made,
        time: Some(proto_time(at)),
    };
    Some(OutboxMessage {
        shard: header.run_id.shard(),
        position,
        run_id: Uuid::from_bytes(*header.run_id.as_bytes()),
        payload: message.encode_to_vec(),
        tenant: header.tenant.clone(),
        workspace: message.workspace,
    })
}

fn failed_task(run: &Run, change: &TaskChange) -> Option<mesh_pb::FailedTask> {
    if change.to != TaskState::Failed {
        return None;
    }
    let asset_key = run
        .plan
        .as_ref()?
        .settings(change.task_ref.ordinal)
        .asset_key
        .to_string();
    Some(mesh_pb::FailedTask {
        task: Some(wire::task_ref_to_proto(change.task_ref)),
        asset_key,
        attempt: change.attempt,
        reason: i32::from(change.reason.code()),
    })
}

fn made_version(version: &Materialized) -> Option<mesh_pb::MadeVersion> {
    let state = match version.promotion {
        Promotion::Promoted => MaterializationState::Promoted,
        Promotion::Quarantined => MaterializationState::Quarantined,
        Promotion::Late => return None,
    };
    Some(mesh_pb::MadeVersion {
        materialization_id: version.attempt_id.to_string(),
        asset_key: version.asset_key.clone(),
        partition_key: version.partition_key.clone(),
        state: i32::from(state.code()),
    })
}
