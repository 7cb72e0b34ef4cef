//! How much longer than needed signatures are valid.

use std::time::Duration;

use crate::limits::{CLOCK_SKEW_MAX, HEARTBEAT_TIMEOUT};

/// How late a worker may be, and how far clocks may differ, before a signature counts as expired.
/// The signing and the verifying service must use the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureGrace(Duration);

impl SignatureGrace {
    /// A longer grace would keep signatures valid long after their attempts have ended.
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

    /// How long a signature for heartbeats or logs is valid: the heartbeat timeout, one grace for a
    /// late heartbeat, and another for clock skew. Each heartbeat renews the signature.
    pub fn heartbeat_signature_ttl(self, heartbeat_timeout: Duration) -> Duration {
        heartbeat_timeout.saturating_add(2 * self.0)
    }
}

impl Default for SignatureGrace {
    fn default() -> SignatureGrace {
        SignatureGrace(CLOCK_SKEW_MAX)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is {0:?}, which would keep signatures valid for too long; set {max:?} or less", max = SignatureGrace::MAX)]
pub struct GraceTooLong(pub Duration);

const _: () = assert!(CLOCK_SKEW_MAX.as_secs() <= SignatureGrace::MAX.as_secs());
