//! Events that RPCs append to the dispatch stream.

use prost::Message as _;
use servo_mesh::Error;
use servo_model::idempotency::IdempotencyKey;
use servo_model::{EventId, EventType};
use servo_proto::v1 as pb;
use servo_store::NewEvent;
use uuid::Uuid;

use super::parse::parse_tenant;
use crate::clock;
use crate::core::ALL_TENANTS;

pub(in crate::rpc) fn new_event_id() -> EventId {
    EventId::new((clock::now() * 1e3) as u64, rand::random())
}

/// Returns an event of the dispatch stream without its payload. Events of all tenants go to shard
/// 0.
pub(in crate::rpc) fn new_event(
    tenant: &str,
    kind: EventType,
    event_id: Uuid,
    key: &IdempotencyKey,
) -> Result<NewEvent, Error> {
    let shard = if tenant == ALL_TENANTS {
        0
    } else {
        parse_tenant(tenant)?.admission_shard()
    };
    Ok(NewEvent {
        event_id,
        kind,
        version: 1,
        shard,
        tenant: tenant.to_owned(),
        workspace: String::new(),
        idempotency_key: key.as_str().to_owned(),
        correlation_id: None,
        causation_id: None,
        payload: Vec::new(),
    })
}

pub(in crate::rpc) fn payload(body: pb::event::Body) -> Vec<u8> {
    pb::Event {
        version: 1,
        trace: None,
        body: Some(body),
    }
    .encode_to_vec()
}
