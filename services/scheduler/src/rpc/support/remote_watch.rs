//! Watching a run that another instance folds.

use std::time::Duration;

use servo_model::RunId;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::scheduler_mesh_service_client::SchedulerMeshServiceClient;
use tokio::sync::watch;
use tonic::Status;

use super::routing::CommandRouter;

/// How long it listens to one instance before it checks whether that one still holds the shard.
const LISTEN_FOR: Duration = Duration::from_secs(10);
/// The delay before it looks for a holder again. Until then the watcher looks periodically.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Subscribes to the changes of a run that another instance folds. That instance sends only what it
/// folds itself, so a notification makes at most one hop.
pub(crate) fn watch_remote(router: CommandRouter, run: RunId) -> watch::Receiver<()> {
    let (changes, receiver) = watch::channel(());
    servo_actor::spawn_task("remote watch", async move {
        tokio::select! {
            () = listen(&router, run, &changes) => {}
            () = changes.closed() => {}
        }
    });
    receiver
}

async fn listen(router: &CommandRouter, run: RunId, changes: &watch::Sender<()>) {
    loop {
        // A timeout is expected: it continues with the instance that holds the shard by then.
        if let Ok(result) = tokio::time::timeout(LISTEN_FOR, subscribe(router, run, changes)).await
        {
            if let Err(status) = result {
                tracing::debug!(%run, error = %status, "failed to watch a run on the holder of its shard");
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}

/// Returns when no other instance holds the shard or the stream ends.
async fn subscribe(
    router: &CommandRouter,
    run: RunId,
    changes: &watch::Sender<()>,
) -> Result<(), Status> {
    let Some(holder) = router.other_holder(run.shard()).await? else {
        return Ok(());
    };
    let request = mesh_pb::HearRunRequest {
        run_id: run.to_string(),
    };
    let mut notifications = SchedulerMeshServiceClient::new(holder.peer)
        .hear_run(request)
        .await?
        .into_inner();
    while notifications.message().await?.is_some() {
        changes.send_replace(());
    }
    Ok(())
}
