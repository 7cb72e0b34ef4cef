//! The watchers of runs. A notification has no content: the watcher reads the run itself.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::RunId;
use tokio::sync::watch;

/// Shared by the lanes and the watchers. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunWatchers {
    /// How many runs are watched, so that lanes take no lock while there are none.
    watched: Arc<AtomicUsize>,
    runs: Arc<Mutex<HashMap<RunId, watch::Sender<()>>>>,
}

impl RunWatchers {
    /// Subscribes to everything that this instance folds of the run. Entries without a subscriber
    /// are removed here.
    pub(crate) fn subscribe(&self, run: RunId) -> watch::Receiver<()> {
        let mut runs = self.lock();
        runs.retain(|_, sender| sender.receiver_count() > 0);
        let receiver = runs
            .entry(run)
            .or_insert_with(|| watch::Sender::new(()))
            .subscribe();
        self.watched.store(runs.len(), Ordering::Release);
        receiver
    }

    pub(super) fn notify(&self, changed: impl Iterator<Item = RunId>) {
        if self.watched.load(Ordering::Acquire) == 0 {
            return;
        }
        let runs = self.lock();
        for sender in changed.filter_map(|run| runs.get(&run)) {
            sender.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, watch::Sender<()>>> {
        self.runs
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_subscribers_of_the_run_are_notified() {
        let watchers = RunWatchers::default();
        let run = RunId::from_bytes([1; 16]);
        let other = RunId::from_bytes([2; 16]);
        watchers.notify([run].into_iter());
        let mut receiver = watchers.subscribe(run);
        assert!(
            !receiver.has_changed().unwrap(),
            "notifications from before the subscription are not delivered"
        );
        watchers.notify([other].into_iter());
        assert!(!receiver.has_changed().unwrap());
        watchers.notify([other, run].into_iter());
        receiver.changed().await.unwrap();
        assert!(!receiver.has_changed().unwrap());
    }

    #[test]
    fn entries_without_subscribers_are_removed() {
        let watchers = RunWatchers::default();
        drop(watchers.subscribe(RunId::from_bytes([1; 16])));
        drop(watchers.subscribe(RunId::from_bytes([2; 16])));
        assert_eq!(watchers.lock().len(), 1);
    }
}
