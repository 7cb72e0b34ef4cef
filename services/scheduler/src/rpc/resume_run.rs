//! ResumeRun: continues a paused run.

use servo_mesh::{Caller, Error};
use servo_proto::v1 as pb;

use super::Scheduler;
use super::support::parse;
use super::support::run_control::{ControlRequest, RunAction, control};

pub(super) async fn resume_run(
    scheduler: &Scheduler,
    caller: &Caller,
    request: pb::ResumeRunRequest,
) -> Result<pb::ResumeRunResponse, Error> {
    let control_request = ControlRequest::new(
        RunAction::Resume,
        &request.request_id,
        &request.run_id,
        request.expected_version,
        &request.comment,
    )?;
    let scope = (&parse::tenant(&request.tenant)?, request.workspace.as_str());
    let (run, accepted_event_id) = control(scheduler, caller, scope, control_request).await?;
    Ok(pb::ResumeRunResponse {
        run: Some(run),
        accepted_event_id,
    })
}
