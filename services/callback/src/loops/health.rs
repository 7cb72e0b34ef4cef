//! Recording that this instance accepts heartbeats, and since when without interruption. The
//! scheduler declares no attempt lost whose heartbeats may have met a broken callback service.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use servo_store::{LoopStore, StoreError};

use crate::store;

/// A record stays valid while this many further ones are missed.
const MISSED_MAX: u32 = 3;
const INTERVAL_MIN: Duration = Duration::from_millis(200);
const INTERVAL_MAX: Duration = Duration::from_secs(5);
/// Silence after which an instance is given up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    loops: LoopStore,
    /// Identifies this instance. One that restarts at the same address takes its record over.
    address: Arc<str>,
    interval: Duration,
    /// Heartbeats were lost since the last record.
    interrupted: Arc<AtomicBool>,
}

impl Health {
    pub(crate) fn new(loops: LoopStore, address: &str, heartbeat_interval: Duration) -> Health {
        let interval = (heartbeat_interval / MISSED_MAX).clamp(INTERVAL_MIN, INTERVAL_MAX);
        Health {
            loops,
            address: address.into(),
            interval,
            interrupted: Arc::default(),
        }
    }

    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// Records that a heartbeat could not be stored.
    pub(crate) fn mark_interrupted(&self) {
        self.interrupted.store(true, Ordering::Release);
    }

    pub(crate) async fn run_once(&self) -> Result<(), StoreError> {
        let interrupted = self.interrupted.swap(false, Ordering::AcqRel);
        let valid_for = self.interval * MISSED_MAX;
        store::note_instance(
            &self.loops,
            &self.address,
            valid_for,
            interrupted,
            GIVE_UP_AFTER,
        )
        .await
        // The record failed, so the next one must report the interruption.
        .inspect_err(|_| self.mark_interrupted())
    }

    /// Removes the record, so that the scheduler does not wait for this instance.
    pub(crate) async fn leave(&self) -> Result<(), StoreError> {
        store::forget_instance(&self.loops, &self.address).await
    }
}
