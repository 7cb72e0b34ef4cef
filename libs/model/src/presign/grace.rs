//! How much longer than needed signatures live.

use std::time::Duration;

use crate::limits::{CLOCK_SKEW_MAX, HEARTBEAT_TIMEOUT};

/// How late a worker may be, and how far clocks may differ, before a signature counts as expired. Whoever signs and
/// whoever verifies have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureGrace(Duration);

impl SignatureGrace {
    /// More would let signatures outlive by far what they are for.
    pub const MAX: Duration = HEARTBEAT_TIMEOUT;

    pub fn new(grace: Duration) -> Result<SignatureGrace, GraceTooLong> {
        if grace <= Self::MAX {
            Ok(SignatureGrace(grace))
        } else {
            Err(GraceTooLong(grace))
        }
    }

    pub fn get(self) -> Duration {
        self.0
    }

    /// How long a signature for beats or logs lives: until the worker would count as lost, a grace for a beat that is
    /// late, and another for clocks that differ. Each beat renews it.
    pub fn beat_life(self, heartbeat_timeout: Duration) -> Duration {
        heartbeat_timeout.saturating_add(2 * self.0)
    }
}

impl Default for SignatureGrace {
    fn default() -> SignatureGrace {
        SignatureGrace(CLOCK_SKEW_MAX)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is {0:?}, so signatures would outlive what they are for; set {max:?} or less", max = SignatureGrace::MAX)]
pub struct GraceTooLong(pub Duration);

const _: () = assert!(CLOCK_SKEW_MAX.as_secs() <= SignatureGrace::MAX.as_secs());
