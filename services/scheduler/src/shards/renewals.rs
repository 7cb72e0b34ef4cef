//! The renewed leases, shared directly because a lane that is busy with a long flush reads the
//! message about a renewal late.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use servo_model::ShardId;
use servo_store::Lease;

/// Shared by the lease keeper and the lanes. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Renewals(Arc<Mutex<HashMap<ShardId, Lease>>>);

impl Renewals {
    pub(super) fn update<'a>(&self, renewed: impl Iterator<Item = &'a Lease>) {
        self.lock()
            .extend(renewed.map(|lease| (lease.shard(), lease.clone())));
    }

    /// Whether a lease has expired and was not renewed.
    pub(super) fn has_expired(&self, lease: &Lease, now: Instant) -> bool {
        lease.expires() <= now && !self.is_renewed(lease, now)
    }

    fn is_renewed(&self, lease: &Lease, now: Instant) -> bool {
        let renewed = self.lock();
        let same = renewed
            .get(&lease.shard())
            .filter(|newest| newest.epoch() == lease.epoch());
        same.is_some_and(|newest| now < newest.expires())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ShardId, Lease>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
