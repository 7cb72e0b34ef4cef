//! DrainWorker: the worker takes no new attempts and leaves when its own have ended.

use std::time::Duration;

use servo_mesh::{Caller, Error};
use servo_proto::{from_proto_duration, v1 as pb};
use servo_service::request::{required_request_id, tenant_scope};

use super::Dispatcher;
use super::support::parse::parse_worker_id;
use super::support::worker_command::{Command, command_worker};

/// Longest grace. PauseDispatch is the tool for stopping a worker's tasks longer than that.
const GRACE_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

pub(super) async fn drain_worker(
    dispatcher: &Dispatcher,
    caller: &Caller,
    request: pb::DrainWorkerRequest,
) -> Result<pb::DrainWorkerResponse, Error> {
    required_request_id(&request.request_id)?;
    let grace = request.grace.map(parse_grace).transpose()?;
    let command = Command {
        worker: parse_worker_id(&request.worker_id)?,
        tenant: tenant_scope(&request.tenant)?,
        command: pb::WorkerCommand::Drain,
        expected_version: request.expected_version,
        cut_off: grace.map(|grace| servo_mesh::now().plus(grace)),
        requested_by: pb::Actor {
            principal: caller.principal.clone(),
            comment: request.comment,
        },
    };
    let (worker, accepted_event_id) = command_worker(dispatcher, caller, command).await?;
    Ok(pb::DrainWorkerResponse {
        worker: Some(worker),
        accepted_event_id,
    })
}

fn parse_grace(grace: prost_types::Duration) -> Result<Duration, Error> {
    let valid = from_proto_duration(&grace).filter(|grace| *grace <= GRACE_MAX);
    let message = || {
        format!(
            "is negative, malformed or longer than {} seconds; send a value between",
            GRACE_MAX.as_secs()
        )
    };
    valid.ok_or_else(|| Error::bad_field("grace", message()))
}
