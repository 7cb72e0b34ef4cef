//! What goes on in a run, as it happens.

use futures::stream::{self, StreamExt, TryStreamExt};
use futures::{FutureExt, future};
use servo_proto::v1 as pb;

use super::call::{Call, Many, One};
use super::{Workspace, given};
use crate::client::Client;
use crate::error::Error;

impl Workspace {
    /// What changes about a run, until it has ended. A connection that breaks is made again, and the stream goes on
    /// behind the last message.
    pub fn watch(&self, run_id: &str) -> Call<pb::WatchRunRequest, Many<pb::WatchRunResponse>> {
        self.call(self.watching(run_id), |client, asked| {
            client.watch_run(asked).boxed()
        })
    }

    /// The run, once it has ended. Whoever will not wait for ever puts a [`tokio::time::timeout`] around it.
    pub fn wait(&self, run_id: &str) -> Call<pb::WatchRunRequest, One<pb::Run>> {
        self.call(self.watching(run_id), |client, asked| {
            ended(client, asked).boxed()
        })
    }

    /// What its tasks wrote; as long as it runs, when it is followed (`follow`). Over broken connections like
    /// [`Workspace::watch`].
    pub fn logs(&self, run_id: &str) -> Call<pb::TailLogsRequest, Many<pb::LogLine>> {
        let asked = pb::TailLogsRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            client
                .tail_logs(asked)
                .map_ok(|told| stream::iter(told.lines).map(Ok))
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

async fn ended(client: Client, asked: pb::WatchRunRequest) -> Result<pb::Run, Error> {
    let runs = client
        .watch_run(asked.clone())
        .try_filter_map(|told| future::ok(told.run));
    let mut ended = std::pin::pin!(runs.try_filter(|run| future::ready(has_ended(run))));
    if let Some(run) = ended.try_next().await? {
        return Ok(run);
    }
    let pb::WatchRunRequest {
        tenant,
        workspace,
        run_id,
        ..
    } = asked;
    let read = pb::GetRunRequest {
        tenant,
        workspace,
        run_id,
        ..Default::default()
    };
    given(
        client.scheduler().get_run(read).await?.into_inner().run,
        "run",
    )
}

fn has_ended(run: &pb::Run) -> bool {
    use pb::RunState::{Cancelled, Failed, Succeeded, TimedOut};
    matches!(run.state(), Succeeded | Failed | Cancelled | TimedOut)
}
