//! The workspaces of workers and pauses, for principals that are confined to some workspaces.

use servo_mesh::{Caller, Error};
use servo_proto::v1 as pb;

use crate::store::PauseRow;

/// Refuses a worker that serves workspaces where the caller may not act. A worker without a list
/// serves all workspaces.
pub(in crate::rpc) fn check_workspaces(
    caller: &Caller,
    info: &pb::WorkerInfo,
) -> Result<(), Error> {
    const FIELD: &str = "info.workspaces";
    if info.workspaces.is_empty() {
        return caller.check_workspace(FIELD, "");
    }
    let check = |workspace: &String| caller.check_workspace(FIELD, workspace);
    info.workspaces.iter().try_for_each(check)
}

/// Returns the worker as the caller may see it: one that serves some of the caller's workspaces,
/// without the names of others.
pub(in crate::rpc) fn visible_to(caller: &Caller, mut worker: pb::Worker) -> Option<pb::Worker> {
    let listed = worker
        .info
        .as_mut()
        .filter(|info| !info.workspaces.is_empty());
    let Some(info) = listed else {
        return Some(worker);
    };
    info.workspaces
        .retain(|name| caller.workspaces.contains(name));
    let is_visible = !info.workspaces.is_empty();
    is_visible.then_some(worker)
}

/// Returns whether the caller may see a pause: one of its workspaces, or one of all workspaces,
/// which holds back its own too.
pub(in crate::rpc) fn sees_pause(caller: &Caller, pause: &PauseRow) -> bool {
    pause.workspace.is_empty() || caller.workspaces.contains(&pause.workspace)
}
