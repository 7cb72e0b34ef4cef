//! Following a run: streams that resume after a broken connection.

use std::time::Duration;

use futures::stream::{self, Stream};
use servo_proto::v1 as pb;
use tonic::{Response, Status, Streaming};

use crate::client::Client;
use crate::error::{Error, is_broken};

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Tries to open a stream that has not returned anything yet.
const FIRST_TRIES: u32 = 5;

impl Client {
    /// Streams the changes of a run until it has ended. A broken connection is reopened, and the
    /// stream resumes after the last message. A refusal ends the stream, and so does a server that
    /// cannot be reached in the first place.
    pub fn watch_run(
        &self,
        request: pb::WatchRunRequest,
    ) -> impl Stream<Item = Result<pb::WatchRunResponse, Error>> + use<> {
        follow(self.clone(), request)
    }

    /// Streams the log lines of a run's tasks; resumes like [`Client::watch_run`].
    pub fn tail_logs(
        &self,
        request: pb::TailLogsRequest,
    ) -> impl Stream<Item = Result<pb::TailLogsResponse, Error>> + use<> {
        follow(self.clone(), request)
    }
}

/// A request whose stream can be resumed after any of its messages.
trait Resumable: Clone {
    type Message;

    fn open(
        self,
        client: &Client,
    ) -> impl Future<Output = Result<Response<Streaming<Self::Message>>, Status>> + Send;

    fn resume_after(&mut self, message: &Self::Message);
}

impl Resumable for pb::WatchRunRequest {
    type Message = pb::WatchRunResponse;

    async fn open(self, client: &Client) -> Result<Response<Streaming<Self::Message>>, Status> {
        client.scheduler().watch_run(self).await
    }

    fn resume_after(&mut self, message: &Self::Message) {
        self.resume_token.clone_from(&message.resume_token);
    }
}

impl Resumable for pb::TailLogsRequest {
    type Message = pb::TailLogsResponse;

    async fn open(self, client: &Client) -> Result<Response<Streaming<Self::Message>>, Status> {
        client.callback().tail_logs(self).await
    }

    fn resume_after(&mut self, message: &Self::Message) {
        self.resume_token.clone_from(&message.resume_token);
    }
}

fn follow<R: Resumable>(
    client: Client,
    request: R,
) -> impl Stream<Item = Result<R::Message, Error>> {
    let tries_left = Some(FIRST_TRIES);
    let followed = FollowedStream {
        client,
        request,
        stream: None,
        pause: PAUSE_MIN,
        tries_left,
        ended: false,
    };
    stream::unfold(followed, |mut followed| async move {
        let next = followed.next().await?;
        followed.ended |= next.is_err();
        Some((next, followed))
    })
}

struct FollowedStream<R: Resumable> {
    client: Client,
    request: R,
    stream: Option<Streaming<R::Message>>,
    pause: Duration,
    /// `None` after the first message: from then on reconnecting is tried without limit.
    tries_left: Option<u32>,
    ended: bool,
}

impl<R: Resumable> FollowedStream<R> {
    async fn next(&mut self) -> Option<Result<R::Message, Error>> {
        while !self.ended {
            match self.read().await {
                Ok(Some(message)) => {
                    self.pause = PAUSE_MIN;
                    self.tries_left = None;
                    self.request.resume_after(&message);
                    return Some(Ok(message));
                }
                Ok(None) => return None,
                Err(status) if is_broken(&status) && self.may_retry() => {
                    self.stream = None;
                    tokio::time::sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(PAUSE_MAX);
                }
                Err(status) => return Some(Err(status.into())),
            }
        }
        None
    }

    fn may_retry(&mut self) -> bool {
        self.tries_left = self.tries_left.map(|left| left - 1);
        self.tries_left != Some(0)
    }

    async fn read(&mut self) -> Result<Option<R::Message>, Status> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            empty => empty.insert(self.request.clone().open(&self.client).await?.into_inner()),
        };
        stream.message().await
    }
}
