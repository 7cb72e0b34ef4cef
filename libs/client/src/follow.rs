//! Following a run: streams that go on where they broke off.

use std::time::Duration;

use futures::stream::{self, Stream};
use servo_proto::v1 as pb;
use tonic::{Response, Status, Streaming};

use crate::client::Client;
use crate::error::{Error, is_broken};

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Of a stream that never began.
const FIRST_TRIES: u32 = 5;

impl Client {
    /// What changes about a run, until it has ended. A connection that breaks is made again, and the stream goes on
    /// behind the last message; a refusal ends it, and so does a server that was never there.
    pub fn watch_run(
        &self,
        request: pb::WatchRunRequest,
    ) -> impl Stream<Item = Result<pb::WatchRunResponse, Error>> + use<> {
        follow(self.clone(), request)
    }

    /// What the tasks of a run wrote; over broken connections like [`Client::watch_run`].
    pub fn tail_logs(
        &self,
        request: pb::TailLogsRequest,
    ) -> impl Stream<Item = Result<pb::TailLogsResponse, Error>> + use<> {
        follow(self.clone(), request)
    }
}

/// A request whose stream can be taken up again behind any of its messages.
trait Resumable: Clone {
    type Message;

    fn open(
        self,
        client: &Client,
    ) -> impl Future<Output = Result<Response<Streaming<Self::Message>>, Status>> + Send;

    fn go_on_behind(&mut self, message: &Self::Message);
}

impl Resumable for pb::WatchRunRequest {
    type Message = pb::WatchRunResponse;

    async fn open(self, client: &Client) -> Result<Response<Streaming<Self::Message>>, Status> {
        client.scheduler().watch_run(self).await
    }

    fn go_on_behind(&mut self, message: &Self::Message) {
        self.resume_token.clone_from(&message.resume_token);
    }
}

impl Resumable for pb::TailLogsRequest {
    type Message = pb::TailLogsResponse;

    async fn open(self, client: &Client) -> Result<Response<Streaming<Self::Message>>, Status> {
        client.callback().tail_logs(self).await
    }

    fn go_on_behind(&mut self, message: &Self::Message) {
        self.resume_token.clone_from(&message.resume_token);
    }
}

fn follow<R: Resumable>(
    client: Client,
    request: R,
) -> impl Stream<Item = Result<R::Message, Error>> {
    let tries_left = Some(FIRST_TRIES);
    let followed = Followed {
        client,
        request,
        stream: None,
        pause: PAUSE_MIN,
        tries_left,
        over: false,
    };
    stream::unfold(followed, |mut followed| async move {
        let next = followed.next().await?;
        followed.over |= next.is_err();
        Some((next, followed))
    })
}

struct Followed<R: Resumable> {
    client: Client,
    request: R,
    stream: Option<Streaming<R::Message>>,
    pause: Duration,
    /// `None` once something came: what was there is waited for.
    tries_left: Option<u32>,
    over: bool,
}

impl<R: Resumable> Followed<R> {
    async fn next(&mut self) -> Option<Result<R::Message, Error>> {
        while !self.over {
            match self.read().await {
                Ok(Some(message)) => {
                    (self.pause, self.tries_left) = (PAUSE_MIN, None);
                    self.request.go_on_behind(&message);
                    return Some(Ok(message));
                }
                Ok(None) => return None,
                Err(status) if is_broken(&status) && self.may_try_again() => {
                    self.stream = None;
                    tokio::time::sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(PAUSE_MAX);
                }
                Err(status) => return Some(Err(status.into())),
            }
        }
        None
    }

    fn may_try_again(&mut self) -> bool {
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
