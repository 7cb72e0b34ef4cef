//! KillWorker: the worker stops its attempts and leaves.

use servo_mesh::{Caller, Error};
use servo_proto::v1 as pb;
use servo_service::request::{required_request_id, tenant_scope};

use super::Dispatcher;
use super::support::parse::parse_worker_id;
use super::support::worker_command::{Command, command_worker};

pub(super) async fn kill_worker(
    dispatcher: &Dispatcher,
    caller: &Caller,
    request: pb::KillWorkerRequest,
) -> Result<pb::KillWorkerResponse, Error> {
    required_request_id(&request.request_id)?;
    let command = Command {
        worker: parse_worker_id(&request.worker_id)?,
        tenant: tenant_scope(&request.tenant)?,
        command: pb::WorkerCommand::Kill,
        expected_version: request.expected_version,
        cut_off: None,
        requested_by: pb::Actor {
            principal: caller.principal.clone(),
            comment: request.comment,
        },
    };
    let (worker, accepted_event_id) = command_worker(dispatcher, caller, command).await?;
    Ok(pb::KillWorkerResponse {
        worker: Some(worker),
        accepted_event_id,
    })
}
