//! Forwarding a start or an outcome and reading the verdict.

use servo_mesh::Error;
use servo_model::presign::CallbackPath;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::attempt_report::Report;
use servo_proto::v1 as pb;

use crate::rpc::Callback;

/// Returns the verdict, or the error of a refusal. The event id is set by the forwarder.
pub(in crate::rpc) async fn forward_report(
    callback: &Callback,
    path: &CallbackPath,
    report: Report,
) -> Result<mesh_pb::AttemptVerdict, Error> {
    let report = mesh_pb::AttemptReport {
        tenant: path.tenant.to_string(),
        workspace: path.workspace.to_string(),
        event_id: String::new(),
        report: Some(report),
    };
    let verdict = callback.forwarder.report(path, report).await?;
    callback
        .metrics
        .note_report(path.verb.name(), verdict.acceptance());
    match verdict.acceptance() {
        pb::Acceptance::Refused => Err(Error::new(verdict.refusal(), verdict.message)),
        _ => Ok(verdict),
    }
}
