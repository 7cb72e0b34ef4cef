//! Streams of the progress of a run.

use futures::stream::{self, StreamExt, TryStreamExt};
use futures::{FutureExt, future};
use servo_proto::v1 as pb;

use super::call::{Call, ItemStream, ResponseFuture};
use super::{Workspace, required};
use crate::client::Client;
use crate::error::Error;

impl Workspace {
    /// Streams the changes of a run until it has ended. A broken connection is reopened, and the
    /// stream resumes after the last message.
    pub fn watch(
        &self,
        run_id: &str,
    ) -> Call<pb::WatchRunRequest, ItemStream<pb::WatchRunResponse>> {
        self.call(self.watching(run_id), |client, request| {
            client.watch_run(request).boxed()
        })
    }

    /// Returns the run once it has ended. Wrap the call in [`tokio::time::timeout`] to limit the
    /// wait.
    pub fn wait(&self, run_id: &str) -> Call<pb::WatchRunRequest, ResponseFuture<pb::Run>> {
        self.call(self.watching(run_id), |client, request| {
            ended(client, request).boxed()
        })
    }

    /// Streams the log lines of its tasks; with `follow`, until the run has ended. Resumes like
    /// [`Workspace::watch`].
    pub fn logs(&self, run_id: &str) -> Call<pb::TailLogsRequest, ItemStream<pb::LogLine>> {
        let request = pb::TailLogsRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.call(request, |client, request| {
            client
                .tail_logs(request)
                .map_ok(|response| stream::iter(response.lines).map(Ok))
                .try_flatten()
                .boxed()
        })
    }

    fn watching(&self, run_id: &str) -> pb::WatchRunRequest {
        pb::WatchRunRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            ..Default::default()
        }
    }
}

async fn ended(client: Client, request: pb::WatchRunRequest) -> Result<pb::Run, Error> {
    let runs = client
        .watch_run(request.clone())
        .try_filter_map(|response| future::ok(response.run));
    let mut ended = std::pin::pin!(runs.try_filter(|run| future::ready(has_ended(run))));
    if let Some(run) = ended.try_next().await? {
        return Ok(run);
    }
    let pb::WatchRunRequest {
        tenant,
        workspace,
        run_id,
        ..
    } = request;
    let read = pb::GetRunRequest {
        tenant,
        workspace,
        run_id,
        ..Default::default()
    };
    required(
        client.scheduler().get_run(read).await?.into_inner().run,
        "run",
    )
}

fn has_ended(run: &pb::Run) -> bool {
    use pb::RunState::{Cancelled, Failed, Succeeded, TimedOut};
    matches!(run.state(), Succeeded | Failed | Cancelled | TimedOut)
}
