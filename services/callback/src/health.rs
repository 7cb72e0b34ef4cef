//! Whether workers could make themselves heard: every instance notes that it takes beats, and since when without a gap.
//! The scheduler declares nobody lost who may have beaten against a closed door.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use servo_store::{LoopStore, StoreError, query};

/// A note counts for so many further ones.
const NOTES_MISSED_MAX: u32 = 3;
const NOTE_EVERY_MIN: Duration = Duration::from_millis(200);
const NOTE_EVERY_MAX: Duration = Duration::from_secs(5);
/// After so long a silence an instance does not come back.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    loops: LoopStore,
    /// Names the place of this instance: one that comes back there takes its note over.
    address: Arc<str>,
    every: Duration,
    /// Beats were lost since the last note.
    broken: Arc<AtomicBool>,
}

impl Health {
    pub(crate) fn new(loops: LoopStore, address: &str, heartbeat_interval: Duration) -> Health {
        let every = (heartbeat_interval / NOTES_MISSED_MAX).clamp(NOTE_EVERY_MIN, NOTE_EVERY_MAX);
        Health {
            loops,
            address: address.into(),
            every,
            broken: Arc::default(),
        }
    }

    pub(crate) fn every(&self) -> Duration {
        self.every
    }

    /// A beat could not be stored.
    pub(crate) fn broke(&self) {
        self.broken.store(true, Ordering::Release);
    }

    pub(crate) async fn note(&self) -> Result<(), StoreError> {
        let broken = self.broken.swap(false, Ordering::AcqRel);
        let note = query(include_str!("store/note_instance.sql"))
            .bind(&*self.address)
            .bind((self.every * NOTES_MISSED_MAX).as_secs_f64())
            .bind(broken)
            .bind(GIVE_UP_AFTER.as_secs_f64());
        let noted = self.loops.execute(note).await.map(drop);
        // What was not written down must not be forgotten.
        noted.inspect_err(|_| self.broken.store(true, Ordering::Release))
    }

    pub(crate) async fn leave(&self) -> Result<(), StoreError> {
        self.loops
            .execute(query(include_str!("store/leave.sql")).bind(&*self.address))
            .await
            .map(drop)
    }
}
