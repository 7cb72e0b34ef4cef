//! ResumeDispatch: a pause ends.

use servo_mesh::{Error, Reason};
use servo_model::EventType;
use servo_model::idempotency::IdempotencyKey;
use servo_model::limits::NAME_BYTES_MAX;
use servo_proto::v1 as pb;
use servo_store::NewEvent;
use uuid::Uuid;

use super::command_worker::{check_version, new_event, payload};
use super::{Dispatcher, new_event_id, not_appended, text, unavailable};
use crate::store::{self, NewPauseState, PauseRow};

impl Dispatcher {
    pub(super) async fn resume(
        &self,
        principal: String,
        request: pb::ResumeDispatchRequest,
    ) -> Result<pb::ResumeDispatchResponse, Error> {
        text::plain("pause_id", &request.pause_id, NAME_BYTES_MAX)?;
        text::comment(&request.comment)?;
        let mut tx = self
            .store
            .requests()
            .begin(&request.tenant)
            .await
            .map_err(unavailable)?;
        let row = store::lock_pause(&mut tx, &request.tenant, &request.pause_id)
            .await
            .map_err(unavailable)?;
        let row = holding(row, &request.pause_id)?;
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
            principal: &principal,
            comment: &request.comment,
        };
        store::put_pause(&mut tx, &state)
            .await
            .map_err(unavailable)?;
        tx.append(&[resumed(&state)?]).await.map_err(not_appended)?;
        tx.commit().await.map_err(unavailable)?;
        self.commanded.ring();
        Ok(pb::ResumeDispatchResponse {
            accepted_event_id: event_id.to_string(),
        })
    }
}

/// The row of a pause that ended stays, so that one that never was is told apart from it.
fn holding(row: Option<PauseRow>, pause_id: &str) -> Result<PauseRow, Error> {
    let refused = |reason, told: &str| {
        Error::new(
            reason,
            format!("{told}; ListDispatchPauses names those that hold"),
        )
    };
    match row {
        Some(row) if row.active => Ok(row),
        Some(_) => Err(refused(
            Reason::InvalidState,
            &format!("the pause `{pause_id}` ended already"),
        )),
        None => Err(refused(
            Reason::DispatchPauseNotFound,
            &format!("there is no pause `{pause_id}`"),
        )),
    }
}

fn resumed(state: &NewPauseState<'_>) -> Result<NewEvent, Error> {
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
    )?;
    Ok(NewEvent {
        payload: payload(pb::event::Body::DispatchResumed(body)),
        ..event
    })
}
