//! Following a run: a stream that goes on where it broke off.

use std::time::Duration;

use futures::stream::{self, Stream};
use servo_proto::v1 as pb;
use tonic::{Code, Streaming};

use crate::client::Client;
use crate::error::Error;

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

impl Client {
    /// What changes about a run, until it has ended. A connection that breaks is made again, and the stream goes on
    /// behind the last message; a refusal ends it.
    pub fn watch_run(
        &self,
        request: pb::WatchRunRequest,
    ) -> impl Stream<Item = Result<pb::WatchRunResponse, Error>> + use<> {
        let watch = Watch { client: self.clone(), request, stream: None, pause: PAUSE_MIN, over: false };
        stream::unfold(watch, |mut watch| async move {
            let next = watch.next().await?;
            watch.over |= next.is_err();
            Some((next, watch))
        })
    }
}

struct Watch {
    client: Client,
    request: pb::WatchRunRequest,
    stream: Option<Streaming<pb::WatchRunResponse>>,
    pause: Duration,
    over: bool,
}

impl Watch {
    async fn next(&mut self) -> Option<Result<pb::WatchRunResponse, Error>> {
        while !self.over {
            match self.read().await {
                Ok(Some(message)) => {
                    self.pause = PAUSE_MIN;
                    self.request.resume_token.clone_from(&message.resume_token);
                    return Some(Ok(message));
                }
                Ok(None) => return None,
                Err(status) if status.code() == Code::Unavailable => {
                    self.stream = None;
                    tokio::time::sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(PAUSE_MAX);
                }
                Err(status) => return Some(Err(status.into())),
            }
        }
        None
    }

    async fn read(&mut self) -> Result<Option<pb::WatchRunResponse>, tonic::Status> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            empty => {
                let opened = self.client.scheduler().watch_run(self.request.clone()).await?;
                empty.insert(opened.into_inner())
            }
        };
        stream.message().await
    }
}
