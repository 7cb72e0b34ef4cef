//! Records finished pushes in batches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_model::states::QueueEntryState;
use servo_store::LoopStore;
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

use super::statements;
use crate::core::retry_delay;
use crate::port::QueueSettings;

/// Results that wait to be recorded; a push that ended waits for capacity.
pub(super) const SETTLED_QUEUED_MAX: usize = 4_096;
const SETTLED_PER_FLUSH_MAX: usize = 1_024;
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The result of a push.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) queue: Arc<str>,
    pub(super) name: String,
    pub(super) tries: i32,
    pub(super) state: QueueEntryState,
    /// The delay until the next try.
    pub(super) delay: Duration,
    /// Why the push failed; empty after a success.
    pub(super) fault: String,
}

impl Settled {
    pub(super) fn of(
        queue: &QueueSettings,
        name: String,
        tries: i32,
        pushed: Result<(), String>,
    ) -> Settled {
        let delay = retry_delay(&queue.retry, &name, tries.unsigned_abs());
        let (state, fault) = match (pushed, delay) {
            (Ok(()), _) => (QueueEntryState::Acked, String::new()),
            (Err(fault), Some(_)) => (QueueEntryState::Created, fault),
            (Err(fault), None) => (QueueEntryState::Failed, fault),
        };
        if state == QueueEntryState::Failed {
            tracing::warn!(
                queue = &*queue.name,
                name,
                tries,
                fault,
                "the last push of a task failed; giving up"
            );
        }
        let delay = delay.unwrap_or_default();
        Settled {
            queue: queue.name.clone(),
            name,
            tries,
            state,
            delay,
            fault,
        }
    }
}

/// Records results until the channel is closed.
pub(super) async fn run(
    loops: LoopStore,
    pusher: Uuid,
    lease: Duration,
    mut ended: mpsc::Receiver<Settled>,
    doorbell: Arc<Notify>,
) {
    let mut batch = Vec::new();
    while ended.recv_many(&mut batch, SETTLED_PER_FLUSH_MAX).await > 0 {
        let begun = Instant::now();
        // After the lease another pusher may have claimed these tasks; they are then pushed again,
        // and nothing is lost.
        while let Err(error) = statements::settle(&loops, pusher, &batch).await {
            if !error.is_transient() || begun.elapsed() > lease {
                tracing::warn!(%error, pushes = batch.len(), "failed to record pushes; they are repeated");
                break;
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        batch.clear();
        doorbell.notify_one();
    }
}
