//! HearRun: the bell of a run for the instances at which it is watched, whoever of them folds it.

use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use servo_mesh::Error;
use servo_model::RunId;
use servo_proto::v1 as pb;
use servo_proto::v1::scheduler_service_client::SchedulerServiceClient;
use tokio::sync::watch;
use tonic::Status;

use super::{Scheduler, answer};
use crate::route::Route;

pub(super) type Rings = Pin<Box<dyn Stream<Item = Result<pb::HearRunResponse, Status>> + Send>>;

/// How long it listens at one instance before it looks whether that one still holds the shard.
const LISTEN: Duration = Duration::from_secs(10);
/// How soon it looks again for somebody to listen to. Meanwhile the watcher looks by itself.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

pub(super) fn hear_run(
    scheduler: &Scheduler,
    request: &pb::HearRunRequest,
) -> Result<Rings, Error> {
    let mut bell = scheduler.shards.listen(answer::run_id(&request.run_id)?);
    // Whatever was folded before this stream was open is found by the look that a first ring causes.
    bell.mark_changed();
    Ok(Box::pin(futures::stream::unfold(bell, |mut bell| async {
        bell.changed().await.ok()?;
        Some((Ok(pb::HearRunResponse {}), bell))
    })))
}

/// Rings whenever another instance, the holder of the run's shard, has folded something of the run. It passes on what that
/// one itself folds and nothing that it hears, so a ring makes one hop.
pub(super) fn listen_elsewhere(route: Route, run: RunId) -> watch::Receiver<()> {
    let (bell, listener) = watch::channel(());
    tokio::spawn(async move {
        tokio::select! {
            () = listen(&route, run, &bell) => {}
            () = bell.closed() => {}
        }
    });
    listener
}

async fn listen(route: &Route, run: RunId, bell: &watch::Sender<()>) {
    loop {
        // Time that ran out is no failure: it listens on, to whoever holds the shard by then.
        if let Ok(message) = tokio::time::timeout(LISTEN, hear(route, run, bell)).await {
            if let Err(status) = message {
                tracing::debug!(%run, error = %status, "the holder of the run's shard is not heard");
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// Returns when there is nobody else to listen to.
async fn hear(route: &Route, run: RunId, bell: &watch::Sender<()>) -> Result<(), Status> {
    let Some(holder) = route.other_holder(run.shard()).await? else {
        return Ok(());
    };
    let request = pb::HearRunRequest {
        run_id: run.to_string(),
    };
    let mut rings = SchedulerServiceClient::new(holder.peer)
        .hear_run(request)
        .await?
        .into_inner();
    while rings.message().await?.is_some() {
        bell.send_replace(());
    }
    Ok(())
}
