//! Pushes that ended, noted together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_model::states::QueueEntryState;
use servo_store::LoopStore;
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

use super::statements;
use crate::core::delay_of;
use crate::port::QueueSettings;

const SETTLED_PER_FLUSH_MAX: usize = 1_024;
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How a push ended.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) queue: Arc<str>,
    pub(super) name: String,
    pub(super) tries: i32,
    pub(super) state: QueueEntryState,
    /// Until the next try.
    pub(super) delay: Duration,
    /// Why it was not taken.
    pub(super) fault: String,
}

impl Settled {
    pub(super) fn of(
        queue: &QueueSettings,
        name: String,
        tries: i32,
        pushed: Result<(), String>,
    ) -> Settled {
        let delay = delay_of(&queue.retry, &name, tries.unsigned_abs());
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
                "a task was pushed for the last time"
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

/// Writes what comes until nobody can send any more.
pub(super) async fn run(
    loops: LoopStore,
    pusher: Uuid,
    patience: Duration,
    mut ended: mpsc::UnboundedReceiver<Settled>,
    bell: Arc<Notify>,
) {
    let mut gathered = Vec::new();
    while ended.recv_many(&mut gathered, SETTLED_PER_FLUSH_MAX).await > 0 {
        let begun = Instant::now();
        // Beyond the lease others may have taken them over: they are pushed once more then, and nothing is lost.
        while let Err(error) = statements::settle(&loops, pusher, &gathered).await {
            if !error.is_transient() || begun.elapsed() > patience {
                tracing::warn!(%error, pushes = gathered.len(), "pushes could not be noted; they are repeated");
                break;
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        gathered.clear();
        bell.notify_one();
    }
}
