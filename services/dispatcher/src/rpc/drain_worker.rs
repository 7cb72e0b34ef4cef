//! DrainWorker: the worker takes no new attempts and leaves when its own have ended.

use std::time::Duration;

use servo_mesh::Error;
use servo_proto::v1 as pb;
use servo_service::request::tenant_scope;

use super::Dispatcher;
use super::support::parse::parse_worker_id;
use super::support::worker_command::{Command, command_worker};

/// Longest grace. PauseDispatch is the tool for stopping a worker's tasks longer than that.
const GRACE_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

pub(super) async fn drain_worker(
    dispatcher: &Dispatcher,
    principal: String,
    request: pb::DrainWorkerRequest,
) -> Result<pb::DrainWorkerResponse, Error> {
    let grace = request.grace.map(parse_grace).transpose()?;
    let command = Command {
        worker: parse_worker_id(&request.worker_id)?,
        tenant: tenant_scope(&request.tenant)?,
        command: pb::WorkerCommand::Drain,
        expected_version: request.expected_version,
        cut_off: grace.map(|grace| servo_mesh::now().plus(grace)),
        requested_by: pb::Actor {
            principal,
            comment: request.comment,
        },
    };
    let (worker, accepted_event_id) = command_worker(dispatcher, command).await?;
    Ok(pb::DrainWorkerResponse {
        worker: Some(worker),
        accepted_event_id,
    })
}

fn parse_grace(grace: prost_types::Duration) -> Result<Duration, Error> {
    let valid = Duration::try_from(grace)
        .ok()
        .filter(|grace| *grace <= GRACE_MAX);
    let message = || {
        format!(
            "is negative or longer than {} seconds; send a value between",
            GRACE_MAX.as_secs()
        )
    };
    valid.ok_or_else(|| Error::bad_field("grace", message()))
}
