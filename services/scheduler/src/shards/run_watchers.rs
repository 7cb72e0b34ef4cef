//! Who wants to hear when a run changes. A bell tells nothing but that it is time to look.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::RunId;
use tokio::sync::watch;

/// Shared by the lanes and whoever watches. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunWatchers {
    /// So that lanes pass by without a lock while nobody listens.
    listened: Arc<AtomicUsize>,
    runs: Arc<Mutex<HashMap<RunId, watch::Sender<()>>>>,
}

impl RunWatchers {
    /// Rings whenever this instance has folded something of the run; bells of ended watches are taken down.
    pub(crate) fn listen(&self, run: RunId) -> watch::Receiver<()> {
        let mut runs = self.lock();
        runs.retain(|_, doorbell| doorbell.receiver_count() > 0);
        let listener = runs
            .entry(run)
            .or_insert_with(|| watch::Sender::new(()))
            .subscribe();
        self.listened.store(runs.len(), Ordering::Release);
        listener
    }

    pub(super) fn ring<'a>(&self, changed: impl Iterator<Item = &'a RunId>) {
        if self.listened.load(Ordering::Acquire) == 0 {
            return;
        }
        let runs = self.lock();
        for doorbell in changed.filter_map(|run| runs.get(run)) {
            doorbell.send_replace(());
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
    async fn only_those_who_listen_to_the_run_hear_it() {
        let (run_watchers, run, other) = (
            RunWatchers::default(),
            RunId::from_bytes([1; 16]),
            RunId::from_bytes([2; 16]),
        );
        run_watchers.ring([run].iter());
        let mut heard = run_watchers.listen(run);
        assert!(
            !heard.has_changed().unwrap(),
            "what rang before is not heard"
        );
        run_watchers.ring([other].iter());
        assert!(!heard.has_changed().unwrap());
        run_watchers.ring([other, run].iter());
        heard.changed().await.unwrap();
        assert!(!heard.has_changed().unwrap());
    }

    #[test]
    fn a_bell_that_nobody_hears_is_taken_down() {
        let run_watchers = RunWatchers::default();
        drop(run_watchers.listen(RunId::from_bytes([1; 16])));
        drop(run_watchers.listen(RunId::from_bytes([2; 16])));
        assert_eq!(run_watchers.lock().len(), 1);
    }
}
