//! StartAttempt: the worker has started an attempt, or asks whether a pushed one may start.

use servo_mesh::{Error, Reason};
use servo_proto::mesh::v1::attempt_report::Report;
use servo_proto::v1 as pb;

use super::Callback;
use super::support::presigned::{heartbeat_timeout, renewed_paths, verify};
use super::support::report::forward_report;
use crate::core::{PresentedPaths, check_attempt, check_time};

pub(crate) async fn start_attempt(
    callback: &Callback,
    presented: PresentedPaths<'_>,
    request: pb::StartAttemptRequest,
) -> Result<pb::StartAttemptResponse, Error> {
    let path = verify(callback, presented, &request)?;
    check_attempt(request.task.as_ref(), &request.worker_id)?;
    check_time("start_time", request.start_time.as_ref())?;
    let timeout = heartbeat_timeout(request.heartbeat_timeout)?;
    let renewed = Some(renewed_paths(callback, &path, timeout));
    let needs_permission = request.mode() == pb::DispatchMode::Push;
    let started = pb::TaskStarted {
        run_id: request.run_id,
        task: request.task,
        attempt_id: request.attempt_id,
        worker_id: request.worker_id,
        session: request.session,
        start_time: request.start_time,
    };
    let verdict = forward_report(callback, &path, Report::Started(started)).await?;
    // A start that is recorded but not folded may turn out stale: the attempt may have timed out
    // while its shard had no holder.
    if needs_permission && verdict.acceptance() == pb::Acceptance::Recorded {
        let message = "the start is recorded, but no scheduler has confirmed it yet; retry";
        return Err(Error::new(Reason::NotReady, message));
    }
    Ok(pb::StartAttemptResponse {
        acceptance: verdict.acceptance,
        renewed,
        accepted_event_id: verdict.event_id,
    })
}
