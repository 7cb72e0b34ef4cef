//! KillWorker: the worker stops its attempts and leaves.

use servo_mesh::Error;
use servo_proto::v1 as pb;
use servo_service::request::tenant_scope;

use super::Dispatcher;
use super::support::parse::parse_worker_id;
use super::support::worker_command::{Command, command_worker};

pub(super) async fn kill_worker(
    dispatcher: &Dispatcher,
    principal: String,
    request: pb::KillWorkerRequest,
) -> Result<pb::KillWorkerResponse, Error> {
    let command = Command {
        worker: parse_worker_id(&request.worker_id)?,
        tenant: tenant_scope(&request.tenant)?,
        command: pb::WorkerCommand::Kill,
        expected_version: request.expected_version,
        cut_off: None,
        requested_by: pb::Actor {
            principal,
            comment: request.comment,
        },
    };
    let (worker, accepted_event_id) = command_worker(dispatcher, command).await?;
    Ok(pb::KillWorkerResponse {
        worker: Some(worker),
        accepted_event_id,
    })
}
