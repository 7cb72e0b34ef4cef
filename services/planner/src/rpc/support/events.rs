//! Builds events of the catalog stream.

use prost::Message as _;
use servo_mesh::{Caller, now};
use servo_model::{DeploymentId, Digest, EventId, EventType, ShardId, Stream};
use servo_proto::v1 as pb;
use servo_store::NewEvent;
use uuid::Uuid;

use crate::store::Scope;

pub(crate) fn catalog_event(
    scope: &Scope,
    kind: EventType,
    idempotency_key: &str,
    body: pb::event::Body,
) -> NewEvent {
    let trace = servo_mesh::current_trace().map(|trace| pb::TraceContext {
        traceparent: trace.to_string(),
        tracestate: String::new(),
    });
    let event = pb::Event {
        version: 1,
        trace,
        body: Some(body),
    };
    NewEvent {
        event_id: Uuid::from_bytes(*new_event_id().as_bytes()),
        kind,
        version: 1,
        shard: catalog_shard(scope),
        tenant: (&scope.tenant).into(),
        workspace: scope.workspace.to_string(),
        idempotency_key: idempotency_key.to_owned(),
        correlation_id: None,
        causation_id: None,
        payload: event.encode_to_vec(),
    }
}

/// Returns the same shard for all events of a workspace, so that they have one order.
fn catalog_shard(scope: &Scope) -> ShardId {
    let hash = Digest::of(format!("{}/{}", scope.tenant, scope.workspace));
    Stream::Catalog.shard_of(&hash)
}

fn new_event_id() -> EventId {
    EventId::new(now().unix_ms(), rand::random())
}

pub(crate) fn new_deployment_id() -> DeploymentId {
    DeploymentId::new(now().unix_ms(), rand::random())
}

pub(crate) fn event_id(event: &NewEvent) -> String {
    EventId::from_bytes(*event.event_id.as_bytes()).to_string()
}

/// Returns the author of a change: the user, or the calling service without one.
pub(crate) fn actor(caller: &Caller, comment: &str) -> pb::Actor {
    let principal = if caller.principal.is_empty() {
        caller.peer.to_string()
    } else {
        caller.principal.clone()
    };
    pb::Actor {
        principal,
        comment: comment.to_owned(),
    }
}
