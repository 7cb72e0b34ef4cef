//! Request ids of calls that change a run: a repeat gets the first answer.
//!
//! The idempotency key of the call's event is derived from the request id, so no table of requests
//! is needed and of two concurrent calls only one is accepted.

use servo_mesh::{Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::{RunId, TenantId};
use servo_proto::v1::event::Body;

use super::errors;
use crate::rpc::Scheduler;
use crate::wire;

/// The idempotency key of a call's event: from its request id, or from the version it creates.
pub(crate) fn event_key(request_id: &str, run_id: &RunId, version: u64) -> String {
    match request_id {
        "" => IdempotencyKey::run_control(run_id, version).to_string(),
        named => IdempotencyKey::run_control_by(named).to_string(),
    }
}

/// Finds the event of the first call with this request id. Fails if that call was a different one.
pub(crate) async fn find_first(
    scheduler: &Scheduler,
    (tenant, workspace): (&TenantId, &str),
    request_id: &str,
    is_same: impl FnOnce(&Body) -> bool,
) -> Result<Option<String>, Error> {
    if request_id.is_empty() {
        return Ok(None);
    }
    let key = IdempotencyKey::run_control_by(request_id);
    let found = scheduler
        .reads
        .store
        .reader()
        .by_key(&tenant.into(), workspace, key.as_str())
        .await;
    let Some(event) = found.map_err(errors::store)? else {
        return Ok(None);
    };
    match wire::body_of(&event.payload) {
        Ok((body, _)) if is_same(&body) => Ok(Some(wire::ulid(event.event_id))),
        _ => {
            let message = format!(
                "request_id `{request_id}` was used before by a different call; choose a new one"
            );
            Err(Error::new(Reason::RequestIdReused, message))
        }
    }
}
