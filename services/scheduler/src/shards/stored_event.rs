//! Events as the ledger stores them.

use prost::Message as _;
use servo_model::ShardId;
use servo_model::idempotency::IdempotencyKey;
use servo_proto::v1::event::Body;
use servo_proto::{kind_of, v1 as pb};
use servo_store::NewEvent;
use uuid::Uuid;

use super::command::{CommandResult, RunEvent};
use crate::core::RunHeader;

/// Refuses an event that the ledger would refuse together with the rest of the flush.
pub(super) fn too_large(event: &NewEvent) -> Option<CommandResult> {
    let (bytes, most) = (event.payload.len(), event.kind.bytes_max());
    (bytes > most).then(|| {
        CommandResult::TooLarge(format!(
            "{} has {bytes} bytes; at most {most} are allowed; shorten it",
            event.kind.name()
        ))
    })
}

/// The ledger event of a command about an existing run.
pub(super) fn new_event(
    event: &RunEvent,
    body: &Body,
    workspace: &str,
    shard: ShardId,
) -> NewEvent {
    NewEvent {
        event_id: event.event_id,
        kind: kind_of(body),
        version: 1,
        shard,
        tenant: event.tenant.clone().into(),
        workspace: workspace.to_owned(),
        idempotency_key: event.idempotency_key.clone(),
        correlation_id: Some(Uuid::from_bytes(*event.run_id.as_bytes())),
        causation_id: None,
        payload: payload(event.trace.clone(), body.clone()),
    }
}

/// An event that the scheduler itself appends to a run.
pub(super) fn event_of(
    header: &RunHeader,
    event_id: Uuid,
    key: &IdempotencyKey,
    causation_id: Option<Uuid>,
    trace: Option<pb::TraceContext>,
    body: Body,
) -> NewEvent {
    NewEvent {
        event_id,
        kind: kind_of(&body),
        version: 1,
        shard: header.run_id.shard(),
        tenant: header.tenant.clone().into(),
        workspace: header.workspace.to_string(),
        idempotency_key: key.to_string(),
        correlation_id: Some(Uuid::from_bytes(*header.run_id.as_bytes())),
        causation_id,
        payload: payload(trace, body),
    }
}

pub(super) fn payload(trace: Option<pb::TraceContext>, body: Body) -> Vec<u8> {
    pb::Event {
        version: 1,
        trace,
        body: Some(body),
    }
    .encode_to_vec()
}
