//! The actor that stores log lines in batches and notifies the readers of a run's log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use servo_model::{AttemptId, RunId};
use servo_store::{LoopStore, Store};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

use crate::store::{self, LogBatch};

const BATCHES_PER_FLUSH_MAX: usize = 256;
/// How much one attempt may write to this instance.
const LINES_PER_ATTEMPT_MAX: usize = 1_000_000;
const BYTES_PER_ATTEMPT_MAX: usize = 256 << 20;
/// Attempts that are counted at a time. Above it all counts start at 0 again.
const ATTEMPTS_COUNTED_MAX: usize = 50_000;

type Reply = oneshot::Sender<Result<(), String>>;

/// The handle to the actor. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Logs {
    inbox: mpsc::UnboundedSender<(LogBatch, Reply)>,
    watchers: RunWatchers,
    written: Arc<Mutex<HashMap<AttemptId, Written>>>,
}

/// How much an attempt has written.
#[derive(Debug, Default, Clone, Copy)]
struct Written {
    lines: usize,
    bytes: usize,
}

impl Written {
    /// Adds to the counts, unless that would exceed a limit.
    fn add(&mut self, lines: usize, bytes: usize) -> bool {
        let more = Written {
            lines: self.lines + lines,
            bytes: self.bytes + bytes,
        };
        let fits = more.lines <= LINES_PER_ATTEMPT_MAX && more.bytes <= BYTES_PER_ATTEMPT_MAX;
        if fits {
            *self = more;
        }
        fits
    }
}

/// Notifies the readers of a run's log.
#[derive(Debug, Clone, Default)]
struct RunWatchers(Arc<Mutex<HashMap<Uuid, watch::Sender<()>>>>);

impl RunWatchers {
    fn notify(&self, runs: impl Iterator<Item = Uuid>) {
        let watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if watchers.is_empty() {
            return;
        }
        for watcher in runs.filter_map(|run| watchers.get(&run)) {
            watcher.send_replace(());
        }
    }
}

impl Logs {
    pub(crate) fn start(store: &Store) -> Logs {
        let (inbox, batches) = mpsc::unbounded_channel();
        let watchers = RunWatchers::default();
        tokio::spawn(run(store.loops().clone(), batches, watchers.clone()));
        Logs {
            inbox,
            watchers,
            written: Arc::default(),
        }
    }

    /// Returns whether the attempt may write this much more, and counts it. A repeated call counts
    /// twice, which is precise enough for a limit that only keeps one attempt from filling the
    /// store.
    pub(crate) fn within_limits(&self, attempt: AttemptId, lines: usize, bytes: usize) -> bool {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= ATTEMPTS_COUNTED_MAX {
            written.clear();
        }
        written.entry(attempt).or_default().add(lines, bytes)
    }

    /// Notifies whenever this instance has stored lines of the run. Channels without receivers are
    /// removed.
    pub(crate) fn subscribe(&self, run: RunId) -> watch::Receiver<()> {
        let mut watchers = self
            .watchers
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|_, watcher| watcher.receiver_count() > 0);
        let run = Uuid::from_bytes(*run.as_bytes());
        watchers
            .entry(run)
            .or_insert_with(|| watch::Sender::new(()))
            .subscribe()
    }

    /// Returns once the lines are stored. Lines that are stored already are not stored again.
    pub(crate) async fn append(&self, batch: LogBatch) -> Result<(), String> {
        let (reply, stored) = oneshot::channel();
        let stopping = || "the callback service is shutting down; retry".to_owned();
        self.inbox.send((batch, reply)).map_err(|_| stopping())?;
        stored.await.map_err(|_| stopping())?
    }
}

async fn run(
    loops: LoopStore,
    mut inbox: mpsc::UnboundedReceiver<(LogBatch, Reply)>,
    watchers: RunWatchers,
) {
    while let Some(first) = inbox.recv().await {
        tokio::task::yield_now().await;
        let mut queued = vec![first];
        while queued.len() < BATCHES_PER_FLUSH_MAX
            && let Ok(more) = inbox.try_recv()
        {
            queued.push(more);
        }
        let (batches, replies): (Vec<LogBatch>, Vec<Reply>) = queued.into_iter().unzip();
        let stored = store::append_logs(&loops, &batches)
            .await
            .map_err(|error| error.to_string());
        watchers.notify(batches.iter().map(|batch| batch.run));
        for reply in replies {
            let _ = reply.send(stored.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempt_may_not_exceed_its_line_and_byte_limits() {
        let mut written = Written::default();
        assert!(written.add(1, BYTES_PER_ATTEMPT_MAX));
        assert!(!written.add(1, 1), "too many bytes");
        assert!(written.add(LINES_PER_ATTEMPT_MAX - 1, 0));
        assert!(!written.add(1, 0), "too many lines");
    }
}
