//! HearRun (internal): notifies another scheduler instance whenever this one folds an event of the
//! run.

use std::pin::Pin;

use futures::Stream;
use servo_mesh::Error;
use servo_proto::mesh::v1 as mesh_pb;
use tonic::Status;

use super::Scheduler;
use super::support::parse;

pub(super) type Notifications =
    Pin<Box<dyn Stream<Item = Result<mesh_pb::HearRunResponse, Status>> + Send>>;

pub(super) fn hear_run(
    scheduler: &Scheduler,
    request: &mesh_pb::HearRunRequest,
) -> Result<Notifications, Error> {
    let mut changes = scheduler.shards.watch_run(parse::run_id(&request.run_id)?);
    // A first notification makes the watcher look for events from before the stream was open.
    changes.mark_changed();
    Ok(Box::pin(futures::stream::unfold(
        changes,
        |mut changes| async {
            changes.changed().await.ok()?;
            Some((Ok(mesh_pb::HearRunResponse {}), changes))
        },
    )))
}
