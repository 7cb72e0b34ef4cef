//! ResumeDispatch: ends a pause.

use servo_mesh::{Caller, Error, Reason};
use servo_model::EventType;
use servo_model::idempotency::IdempotencyKey;
use servo_model::limits::NAME_BYTES_MAX;
use servo_proto::v1 as pb;
use servo_store::NewEvent;
use uuid::Uuid;

use super::Dispatcher;
use super::support::events::{new_event, new_event_id, payload};
use super::support::parse::{check_comment, check_text, check_version};
use super::support::workspaces::sees_pause;
use crate::store::{self, NewPauseState, PauseRow};
use servo_service::errors;
use servo_service::request::{required_request_id, tenant_scope};

pub(super) async fn resume_dispatch(
    dispatcher: &Dispatcher,
    caller: &Caller,
    request: pb::ResumeDispatchRequest,
) -> Result<pb::ResumeDispatchResponse, Error> {
    required_request_id(&request.request_id)?;
    check_text("pause_id", &request.pause_id, NAME_BYTES_MAX)?;
    check_comment(&request.comment)?;
    let tenant = tenant_scope(&request.tenant)?;
    let mut tx = dispatcher
        .store
        .requests()
        .begin_in(&tenant)
        .await
        .map_err(errors::store)?;
    let row = store::lock_pause(&mut tx, &tenant, &request.pause_id)
        .await
        .map_err(errors::store)?;
    // A pause of another workspace is answered like one that does not exist.
    let row = row.filter(|row| sees_pause(caller, row));
    let row = active(row, &request.pause_id)?;
    caller.check_workspace("pause_id", &row.workspace)?;
    check_version(request.expected_version, row.version)?;
    let event_id = new_event_id();
    let state = NewPauseState {
        tenant: &row.tenant,
        pause_id: &row.pause_id,
        workspace: &row.workspace,
        pool: &row.pool,
        active: false,
        version: row.version + 1,
        event_id: Uuid::from_bytes(*event_id.as_bytes()),
        principal: &caller.principal,
        comment: &request.comment,
    };
    store::put_pause(&mut tx, &state)
        .await
        .map_err(errors::store)?;
    tx.append(&[resumed_event(&state)])
        .await
        .map_err(errors::append)?;
    tx.commit().await.map_err(errors::store)?;
    dispatcher.commands_changed.ring();
    Ok(pb::ResumeDispatchResponse {
        accepted_event_id: event_id.to_string(),
    })
}

/// Returns the pause if it is active. Rows of ended pauses are kept, so that an ended pause and an
/// unknown one get different errors.
fn active(row: Option<PauseRow>, pause_id: &str) -> Result<PauseRow, Error> {
    let refused = |reason, message: String| {
        Error::new(
            reason,
            format!("{message}; ListDispatchPauses lists the active ones"),
        )
    };
    match row {
        Some(row) if row.active => Ok(row),
        Some(_) => Err(refused(
            Reason::InvalidState,
            format!("the pause `{pause_id}` ended already"),
        )),
        None => Err(refused(
            Reason::DispatchPauseNotFound,
            format!("there is no pause `{pause_id}`"),
        )),
    }
}

fn resumed_event(state: &NewPauseState<'_>) -> NewEvent {
    let version = state.version.unsigned_abs();
    let requested_by = pb::Actor {
        principal: state.principal.to_owned(),
        comment: state.comment.to_owned(),
    };
    let body = pb::DispatchResumed {
        pause_id: state.pause_id.to_owned(),
        version,
        requested_by: Some(requested_by),
    };
    let key = IdempotencyKey::dispatch_pause(state.pause_id, version);
    let event = new_event(
        state.tenant,
        EventType::DispatchResumed,
        state.event_id,
        &key,
    );
    NewEvent {
        payload: payload(pb::event::Body::DispatchResumed(body)),
        ..event
    }
}
