//! WatchLimits: first everything that holds, then what changes.

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream;
use servo_mesh::{Error, Reason};
use servo_proto::v1::{WatchLimitsRequest, WatchLimitsResponse};
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::Status;
use tonic::codegen::BoxStream;

use super::context::Quota;
use crate::core::picture::Picture;

/// How long a watcher waits for an instance that has just begun.
const FIRST_LOOK_MAX: Duration = Duration::from_secs(2);
const REMIND_EVERY: Duration = Duration::from_secs(15);

pub(super) async fn watch_limits(
    quota: &Quota,
    request: WatchLimitsRequest,
) -> Result<BoxStream<WatchLimitsResponse>, Error> {
    let mut board = quota.board.subscribe();
    let looked = timeout(FIRST_LOOK_MAX, board.wait_for(Option::is_some)).await;
    if !matches!(looked, Ok(Ok(_))) {
        let message = "the limits have not been read yet; open the stream again in a moment";
        return Err(Error::new(Reason::NotReady, message).retry_after(Duration::from_millis(200)));
    }
    drop(looked);
    let watcher = Watcher::new(board, &request.resume_token);
    Ok(Box::pin(stream::unfold(watcher, async |mut watcher| {
        let message = watcher.next().await?;
        Some((Ok::<_, Status>(message), watcher))
    })))
}

/// One stream: where it is, and what is still to be sent.
struct Watcher {
    board: watch::Receiver<Option<Picture>>,
    heard: u64,
    token: String,
    unsent: VecDeque<WatchLimitsResponse>,
}

impl Watcher {
    fn new(mut board: watch::Receiver<Option<Picture>>, token: &str) -> Watcher {
        let first = board
            .borrow_and_update()
            .as_ref()
            .map(|picture| picture.first(token));
        let (messages, heard) = first.unwrap_or_default();
        Watcher {
            board,
            heard,
            token: token.to_owned(),
            unsent: messages.into(),
        }
    }

    /// The next message; `None` when there will be no more changes.
    async fn next(&mut self) -> Option<WatchLimitsResponse> {
        loop {
            if let Some(message) = self.unsent.pop_front() {
                self.token.clone_from(&message.resume_token);
                return Some(message);
            }
            match timeout(REMIND_EVERY, self.board.changed()).await {
                Ok(Ok(())) => self.look(),
                Ok(Err(_)) => return None,
                Err(_) => self
                    .unsent
                    .extend(self.board.borrow().as_ref().map(Picture::reminder)),
            }
        }
    }

    fn look(&mut self) {
        if let Some(picture) = self.board.borrow_and_update().as_ref() {
            let (messages, heard) = picture.since(self.heard, &self.token);
            self.heard = heard;
            self.unsent.extend(messages);
        }
    }
}
