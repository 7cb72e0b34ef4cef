//! What a tenant uses of its limits on tasks, as admission counts it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_model::TenantId;

use super::admission::Admission;
use super::live::Live;

/// One tenant's use just now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Used {
    /// Attempts that hold a slot.
    pub live: u32,
    /// Those of them that travel through the queue.
    pub queued: u32,
    /// Slots taken, by pool. An attempt whose plan is being read is in none yet.
    pub pools: BTreeMap<Arc<str>, u32>,
}

impl Admission {
    /// `None` until every shard of runs has told what is live.
    pub fn used(&self, id: &TenantId) -> Option<Used> {
        if !self.streams.all_told(id.admission_shard()) {
            return None;
        }
        let Some(tenant) = self.tenants.get(id) else {
            return Some(Used::default());
        };
        let count = |holders: &BTreeSet<_>| u32::try_from(holders.len()).unwrap_or(u32::MAX);
        let pools = tenant
            .pools
            .iter()
            .map(|(pool, holders)| (pool.clone(), count(holders)));
        Some(Used {
            live: tenant.live,
            queued: tenant.live_pushed,
            pools: pools.collect(),
        })
    }

    /// Who holds slots of a pool, longest first.
    pub fn holders(&self, id: &TenantId, pool: &str) -> Vec<&Live> {
        let held = self
            .tenants
            .get(id)
            .and_then(|tenant| tenant.pools.get(pool));
        let mut holders: Vec<&Live> = held
            .into_iter()
            .flatten()
            .filter_map(|attempt| self.live.get(attempt))
            .collect();
        holders.sort_by(|one, other| {
            one.since
                .total_cmp(&other.since)
                .then(one.attempt_id.cmp(&other.attempt_id))
        });
        holders
    }
}
