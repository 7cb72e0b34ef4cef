//! The actor that stores log lines in batches and notifies the readers of a run's log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use servo_actor::{BatchHandler, Batcher, Limits, Weight};
use servo_mesh::Error;
use servo_model::{AttemptId, RunId};
use servo_service::errors;
use servo_store::{LoopStore, Store, StoreError};
use tokio::sync::watch;
use uuid::Uuid;

use crate::store::{self, LogBatch};

/// One statement stores up to 256 batches and 16 MB; 4,096 batches may wait, and a caller beyond
/// that waits for capacity.
const LIMITS: Limits = Limits {
    queued_max: 4_096,
    batch_max: Weight {
        items: 256,
        bytes: 16 << 20,
    },
};
/// How much one attempt may write to this instance.
const LINES_PER_ATTEMPT_MAX: usize = 1_000_000;
const BYTES_PER_ATTEMPT_MAX: usize = 256 << 20;
/// Attempts that are counted at a time. Above it all counts start at 0 again.
const ATTEMPTS_COUNTED_MAX: usize = 50_000;

type Answer = Result<(), Arc<StoreError>>;

/// The handle to the actor. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Logs {
    batcher: Batcher<LogBatch, Answer>,
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
        let watchers = RunWatchers::default();
        let appender = Appender {
            loops: store.loops().clone(),
            watchers: watchers.clone(),
        };
        Logs {
            batcher: Batcher::start("logs", LIMITS, appender),
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
    pub(crate) async fn append(&self, batch: LogBatch) -> Result<(), Error> {
        let appended = self.batcher.call(batch).await;
        appended
            .map_err(errors::stopped)?
            .map_err(|error| errors::shared(&error))
    }
}

struct Appender {
    loops: LoopStore,
    watchers: RunWatchers,
}

impl BatchHandler for Appender {
    type Item = LogBatch;
    type Answer = Answer;

    fn weigh(batch: &LogBatch) -> Weight {
        Weight {
            items: 1,
            bytes: batch.lines.len(),
        }
    }

    async fn run(&mut self, batches: Vec<LogBatch>) -> Vec<Answer> {
        let stored = store::append_logs(&self.loops, &batches).await;
        self.watchers.notify(batches.iter().map(|batch| batch.run));
        vec![stored.map_err(Arc::new); batches.len()]
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
