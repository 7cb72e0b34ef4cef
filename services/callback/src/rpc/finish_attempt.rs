//! FinishAttempt: the outcome of an attempt.

use servo_mesh::Error;
use servo_proto::mesh::v1::attempt_report::Report;
use servo_proto::v1 as pb;

use super::Callback;
use super::support::presigned::verify;
use super::support::report::forward_report;
use crate::core::{PresentedPaths, check_outcome};

pub(crate) async fn finish_attempt(
    callback: &Callback,
    presented: PresentedPaths<'_>,
    request: pb::FinishAttemptRequest,
) -> Result<pb::FinishAttemptResponse, Error> {
    let path = verify(callback, presented, &request)?;
    if request.outcome() == pb::Outcome::Unspecified {
        let message = "is missing; send how the attempt ended";
        return Err(Error::bad_field("outcome", message));
    }
    let mut finished = task_finished(request);
    check_outcome(&mut finished)?;
    if finished.outcome() == pb::Outcome::Succeeded && !finished.outputs.is_empty() {
        callback
            .commit_markers
            .check(&path, &finished.outputs)
            .await?;
    }
    let checks = finished.checks.clone();
    let asset_key = finished
        .outputs
        .first()
        .map(|output| output.asset_key.clone())
        .unwrap_or_default();
    let verdict = forward_report(callback, &path, Report::Finished(finished)).await?;
    if let pb::Acceptance::Folded | pb::Acceptance::Recorded = verdict.acceptance() {
        callback
            .metrics
            .note_checks(path.tenant.as_str(), &asset_key, &checks);
    }
    Ok(pb::FinishAttemptResponse {
        acceptance: verdict.acceptance,
        accepted_event_id: verdict.event_id,
    })
}

fn task_finished(request: pb::FinishAttemptRequest) -> pb::TaskFinished {
    pb::TaskFinished {
        run_id: request.run_id,
        task: request.task,
        attempt_id: request.attempt_id,
        worker_id: request.worker_id,
        session: request.session,
        start_time: request.start_time,
        end_time: request.end_time,
        outcome: request.outcome,
        error: request.error,
        skip_reason: request.skip_reason,
        outputs: request.outputs,
        checks: request.checks,
        gating: request.gating,
        usage: request.usage,
        items: request.items,
        sensor: request.sensor,
        // Set by the scheduler that holds the run's shard.
        has_good_version: false,
    }
}
