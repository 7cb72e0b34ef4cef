//! How many attempts and slots of its task limits a tenant takes. Its usage in worker seconds orders
//! tenants ([`crate::core::fairness`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_model::TenantId;

use super::Admission;
use crate::core::live::LiveAttempt;

/// The current counts that one tenant's limits apply to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitCounts {
    /// Attempts that hold a slot.
    pub live: u32,
    /// Of these, the ones that are delivered through the push queue.
    pub queued: u32,
    /// Slots taken by pool. An attempt whose plan is being loaded is in no pool yet.
    pub pools: BTreeMap<Arc<str>, u32>,
}

impl Admission {
    /// Returns `None` until every execution shard has reported its live attempts.
    pub fn limit_counts(&self, id: &TenantId) -> Option<LimitCounts> {
        if !self.streams.is_complete(id.admission_shard()) {
            return None;
        }
        let Some(tenant) = self.tenants.get(id) else {
            return Some(LimitCounts::default());
        };
        let count = |holders: &BTreeSet<_>| u32::try_from(holders.len()).unwrap_or(u32::MAX);
        let pools = tenant
            .pools
            .iter()
            .map(|(pool, holders)| (pool.clone(), count(holders)));
        Some(LimitCounts {
            live: tenant.live,
            queued: tenant.live_pushed,
            pools: pools.collect(),
        })
    }

    /// Returns the attempts that hold slots of a pool, the oldest first.
    pub fn pool_holders(&self, id: &TenantId, pool: &str) -> Vec<&LiveAttempt> {
        let held = self
            .tenants
            .get(id)
            .and_then(|tenant| tenant.pools.get(pool));
        let mut holders: Vec<&LiveAttempt> = held
            .into_iter()
            .flatten()
            .filter_map(|attempt| self.live.get(attempt))
            .collect();
        holders.sort_by_key(|live| (live.since, live.attempt_id));
        holders
    }
}
