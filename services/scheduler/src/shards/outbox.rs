//! What the bus is told of a flush: at most one message per run, and none when nothing happened that others follow.

use prost::Message as _;
use servo_model::states::{MaterializationState, TaskState};
use servo_proto::v1 as pb;
use uuid::Uuid;

use super::rows::ChangedRun;
use crate::core::{Materialized, Promotion, Run, TaskChange, Time};
use crate::wire;

/// One message, as the row of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OutboxMessage {
    pub(super) shard: i16,
    pub(super) position: i64,
    pub(super) run_id: Uuid,
    pub(super) tenant: String,
    pub(super) workspace: String,
    pub(super) payload: Vec<u8>,
}

/// `position` is how far the run's shard is folded with this flush.
pub(super) fn news(changed: &ChangedRun<'_>, position: i64, at: Time) -> Option<OutboxMessage> {
    let ChangedRun {
        run, changes, born, ..
    } = changed;
    let failed: Vec<pb::FailedTask> = changes
        .history
        .iter()
        .filter_map(|change| failed(run, change))
        .collect();
    let made: Vec<pb::MadeVersion> = changes.materialized.iter().filter_map(made).collect();
    if born.is_none() && changes.run_history.is_empty() && failed.is_empty() && made.is_empty() {
        return None;
    }
    let header = &run.header;
    let message = pb::RunChanged {
        tenant: header.tenant.to_string(),
        workspace: header.workspace.to_string(),
        run_id: header.run_id.to_string(),
        shard: u32::from(header.run_id.shard().unsigned_abs()),
        position: position.unsigned_abs(),
        created: born.is_some(),
        state: i32::from(run.state.code()),
        reason: i32::from(run.reason.code()),
        failed_tasks: failed,
        made,
        time: Some(wire::timestamp(at)),
    };
    Some(OutboxMessage {
        shard: header.run_id.shard(),
        position,
        run_id: Uuid::from_bytes(*header.run_id.as_bytes()),
        payload: message.encode_to_vec(),
        tenant: message.tenant,
        workspace: message.workspace,
    })
}

fn failed(run: &Run, change: &TaskChange) -> Option<pb::FailedTask> {
    if change.to != TaskState::Failed {
        return None;
    }
    let asset_key = run
        .plan
        .as_ref()?
        .settings(change.task_ref.ordinal)
        .asset_key
        .to_string();
    Some(pb::FailedTask {
        task: Some(wire::task_ref_to_proto(change.task_ref)),
        asset_key,
        attempt: change.attempt,
        reason: i32::from(change.reason.code()),
    })
}

fn made(made: &Materialized) -> Option<pb::MadeVersion> {
    let state = match made.promotion {
        Promotion::Promoted => MaterializationState::Promoted,
        Promotion::Quarantined => MaterializationState::Quarantined,
        Promotion::Late => return None,
    };
    Some(pb::MadeVersion {
        materialization_id: made.attempt_id.to_string(),
        asset_key: made.asset_key.clone(),
        partition_key: made.partition_key.clone(),
        state: i32::from(state.code()),
    })
}
