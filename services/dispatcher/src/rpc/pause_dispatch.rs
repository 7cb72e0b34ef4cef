//! PauseDispatch: stops admission for a tenant, or for one of its workspaces or pools.

use servo_mesh::{Caller, Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::limits::NAME_BYTES_MAX;
use servo_model::{Digest, EventType, TenantScope};
use servo_proto::v1 as pb;
use servo_store::{AppendResult, NewEvent};
use uuid::Uuid;

use super::Dispatcher;
use super::support::events::{new_event, new_event_id, payload};
use super::support::parse::{check_comment, check_text};
use super::support::rows::dispatch_pause;
use crate::store::{self, NewPauseState, PauseRow};
use servo_service::errors;
use servo_service::request::{required_request_id, tenant_scope};

/// Characters of the hash that names a pause.
const ID_CHARS: usize = 26;
/// How often a call that lost a race is repeated.
const TRIES_MAX: usize = 3;

pub(super) async fn pause_dispatch(
    dispatcher: &Dispatcher,
    caller: &Caller,
    request: pb::PauseDispatchRequest,
) -> Result<pb::PauseDispatchResponse, Error> {
    check(&request)?;
    caller.check_workspace("workspace", &request.workspace)?;
    let tenant = tenant_scope(&request.tenant)?;
    for _ in 0..TRIES_MAX {
        if let Some(row) = try_pause(dispatcher, &tenant, &caller.principal, &request).await? {
            let accepted_event_id =
                servo_model::EventId::from_bytes(*row.event_id.as_bytes()).to_string();
            return Ok(pb::PauseDispatchResponse {
                pause: Some(dispatch_pause(&row)),
                accepted_event_id,
            });
        }
    }
    Err(Error::new(
        Reason::NotReady,
        "the pause is being changed by concurrent calls; retry",
    ))
}

/// Returns the active pause, or `None` when a concurrent call created it first. A row that does not
/// exist yet cannot be locked.
async fn try_pause(
    dispatcher: &Dispatcher,
    tenant: &TenantScope,
    principal: &str,
    request: &pb::PauseDispatchRequest,
) -> Result<Option<PauseRow>, Error> {
    let pause_id = pause_id(request);
    let mut tx = dispatcher
        .store
        .requests()
        .begin_in(tenant)
        .await
        .map_err(errors::store)?;
    let before = store::lock_pause(&mut tx, tenant, &pause_id)
        .await
        .map_err(errors::store)?;
    if before.as_ref().is_some_and(|row| row.active) {
        return Ok(before);
    }
    let state = NewPauseState {
        tenant,
        pause_id: &pause_id,
        workspace: &request.workspace,
        pool: &request.pool,
        active: true,
        version: before.map_or(0, |row| row.version) + 1,
        event_id: Uuid::from_bytes(*new_event_id().as_bytes()),
        principal,
        comment: &request.comment,
    };
    let row = store::put_pause(&mut tx, &state)
        .await
        .map_err(errors::store)?;
    let appended = tx
        .append(&[paused_event(&state)])
        .await
        .map_err(errors::append)?;
    if appended
        .iter()
        .any(|event| event.result != AppendResult::New)
    {
        return Ok(None);
    }
    tx.commit().await.map_err(errors::store)?;
    dispatcher.commands_changed.ring();
    Ok(Some(row))
}

fn check(request: &pb::PauseDispatchRequest) -> Result<(), Error> {
    required_request_id(&request.request_id)?;
    if !request.workspace.is_empty() {
        let parsed = request.workspace.parse::<servo_model::WorkspaceId>();
        parsed.map_err(|error| Error::bad_field("workspace", error.to_string()))?;
    }
    check_text("pool", &request.pool, NAME_BYTES_MAX)?;
    check_comment(&request.comment)
}

fn pause_id(request: &pb::PauseDispatchRequest) -> String {
    let named = format!(
        "{}\n{}\n{}",
        request.tenant, request.workspace, request.pool
    );
    format!("pause_{}", &Digest::of(named).to_string()[..ID_CHARS])
}

fn paused_event(state: &NewPauseState<'_>) -> NewEvent {
    let version = state.version.unsigned_abs();
    let body = pb::DispatchPaused {
        pause_id: state.pause_id.to_owned(),
        workspace: state.workspace.to_owned(),
        pool: state.pool.to_owned(),
        version,
        requested_by: Some(pb::Actor {
            principal: state.principal.to_owned(),
            comment: state.comment.to_owned(),
        }),
    };
    let key = IdempotencyKey::dispatch_pause(state.pause_id, version);
    let event = new_event(
        state.tenant,
        EventType::DispatchPaused,
        state.event_id,
        &key,
    );
    NewEvent {
        payload: payload(pb::event::Body::DispatchPaused(body)),
        ..event
    }
}
