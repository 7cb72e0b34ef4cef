//! Calls that change a run and name themselves: a repeat gets the first answer.
//!
//! The event of such a call stands in the ledger under a key that is made of its request_id, so no table of requests is
//! needed, and two at once cannot both be taken.

use servo_mesh::{Error, Reason};
use servo_model::RunId;
use servo_model::idempotency::IdempotencyKey;
use servo_proto::v1::event::Body;

use super::{Scheduler, answer};
use crate::wire;

/// The key of a call's event: its own name if it has one, else the version that it makes.
pub(super) fn key(request_id: &str, run_id: &RunId, version: u64) -> String {
    match request_id {
        "" => IdempotencyKey::run_control(run_id, version).to_string(),
        named => IdempotencyKey::run_control_by(named).to_string(),
    }
}

/// The event of the call that came first under this request_id, if there is one and it said the same.
pub(super) async fn first(
    scheduler: &Scheduler,
    (tenant, workspace): (&str, &str),
    request_id: &str,
    is_same: impl FnOnce(&Body) -> bool,
) -> Result<Option<String>, Error> {
    if request_id.is_empty() {
        return Ok(None);
    }
    let key = IdempotencyKey::run_control_by(request_id);
    let found = scheduler
        .store
        .reader()
        .by_key(tenant, workspace, key.as_str())
        .await;
    let Some(event) = found.map_err(answer::store)? else {
        return Ok(None);
    };
    match wire::body_of(&event.payload) {
        Ok((body, _)) if is_same(&body) => Ok(Some(wire::ulid(event.event_id))),
        _ => {
            let message = format!(
                "request_id `{request_id}` was used before by a call that said something else; choose a new one"
            );
            Err(Error::new(Reason::RequestIdReused, message))
        }
    }
}
