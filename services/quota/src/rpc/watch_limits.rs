//! WatchLimits: streams all limits first, then changes.

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream;
use servo_mesh::{Error, Reason};
use servo_proto::mesh::v1::{WatchLimitsRequest, WatchLimitsResponse};
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::Status;
use tonic::codegen::BoxStream;

use super::Quota;
use crate::core::limits_snapshot::LimitsSnapshot;

/// How long a watcher waits for an instance that has just started.
const FIRST_SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(2);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

pub(super) async fn watch_limits(
    quota: &Quota,
    request: WatchLimitsRequest,
) -> Result<BoxStream<WatchLimitsResponse>, Error> {
    let mut snapshots = quota.snapshots.subscribe();
    let first = timeout(FIRST_SNAPSHOT_TIMEOUT, snapshots.wait_for(Option::is_some)).await;
    if !matches!(first, Ok(Ok(_))) {
        let message = "the limits have not been read yet; open the stream again in a moment";
        return Err(Error::new(Reason::NotReady, message).retry_after(Duration::from_millis(200)));
    }
    drop(first);
    let watcher = Watcher::new(snapshots, &request.resume_token);
    Ok(Box::pin(stream::unfold(watcher, async |mut watcher| {
        let message = watcher.next().await?;
        Some((Ok::<_, Status>(message), watcher))
    })))
}

/// One stream: its position and the messages to send.
struct Watcher {
    snapshots: watch::Receiver<Option<LimitsSnapshot>>,
    last_change: u64,
    token: String,
    unsent: VecDeque<WatchLimitsResponse>,
}

impl Watcher {
    fn new(mut snapshots: watch::Receiver<Option<LimitsSnapshot>>, token: &str) -> Watcher {
        let initial = snapshots
            .borrow_and_update()
            .as_ref()
            .map(|snapshot| snapshot.initial_messages(token));
        let (messages, last_change) = initial.unwrap_or_default();
        Watcher {
            snapshots,
            last_change,
            token: token.to_owned(),
            unsent: messages.into(),
        }
    }

    /// Returns the next message, or `None` when there will be no more changes.
    async fn next(&mut self) -> Option<WatchLimitsResponse> {
        loop {
            if let Some(message) = self.unsent.pop_front() {
                self.token.clone_from(&message.resume_token);
                return Some(message);
            }
            match timeout(KEEPALIVE_EVERY, self.snapshots.changed()).await {
                Ok(Ok(())) => self.queue_changes(),
                Ok(Err(_)) => return None,
                Err(_) => self.unsent.extend(
                    self.snapshots
                        .borrow()
                        .as_ref()
                        .map(LimitsSnapshot::keepalive),
                ),
            }
        }
    }

    fn queue_changes(&mut self) {
        if let Some(snapshot) = self.snapshots.borrow_and_update().as_ref() {
            let (messages, last_change) = snapshot.messages_since(self.last_change, &self.token);
            self.last_change = last_change;
            self.unsent.extend(messages);
        }
    }
}
