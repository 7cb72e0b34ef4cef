//! Events that RPCs append to the dispatch stream.

use prost::Message as _;
use servo_model::idempotency::IdempotencyKey;
use servo_model::{AdmissionShard, EventId, EventType, TenantId, TenantScope};
use servo_proto::v1 as pb;
use servo_store::NewEvent;
use uuid::Uuid;

pub(in crate::rpc) fn new_event_id() -> EventId {
    EventId::new(servo_mesh::now().unix_ms(), rand::random())
}

/// Returns an event of the dispatch stream without its payload.
pub(in crate::rpc) fn new_event(
    tenant: &TenantScope,
    kind: EventType,
    event_id: Uuid,
    key: &IdempotencyKey,
) -> NewEvent {
    let shard = tenant
        .tenant()
        .map_or(AdmissionShard::OF_ALL_TENANTS, TenantId::admission_shard);
    NewEvent {
        event_id,
        kind,
        version: 1,
        shard: shard.into(),
        tenant: tenant.clone(),
        workspace: String::new(),
        idempotency_key: key.as_str().to_owned(),
        correlation_id: None,
        causation_id: None,
        payload: Vec::new(),
    }
}

pub(in crate::rpc) fn payload(body: pb::event::Body) -> Vec<u8> {
    pb::Event {
        version: 1,
        trace: None,
        body: Some(body),
    }
    .encode_to_vec()
}
