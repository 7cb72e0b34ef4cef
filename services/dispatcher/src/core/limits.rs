//! Limits and pauses that quotas and operators set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_model::{PerTenant, TenantId, TenantScope, WorkspaceId};

/// Shares are given in parts per million.
const PPM: u64 = 1_000_000;

/// The limits of all tenants. Nothing is admitted until the quota service has sent them.
pub type Limits = PerTenant<TenantLimits>;

/// The limits of one tenant. The default has no caps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantLimits {
    pub max_concurrent_tasks: Option<u32>,
    /// Attempts that are delivered through the push queue.
    pub max_queued_tasks: Option<u32>,
    pub weight_millis: u32,
    pub backfill_floor_ppm: u32,
    pub backfill_cap_ppm: u32,
    /// Slots by name. A pool that is not listed has no limit.
    pub pools: BTreeMap<Arc<str>, u32>,
    pub suspended: bool,
    /// Exhausted budgets that stop all tasks, by workspace; `None` covers all workspaces.
    pub spent_budgets: BTreeMap<Option<WorkspaceId>, Arc<str>>,
}

impl Default for TenantLimits {
    fn default() -> TenantLimits {
        TenantLimits {
            max_concurrent_tasks: None,
            max_queued_tasks: None,
            weight_millis: 1_000,
            backfill_floor_ppm: 100_000,
            backfill_cap_ppm: 500_000,
            pools: BTreeMap::new(),
            suspended: false,
            spent_budgets: BTreeMap::new(),
        }
    }
}

impl TenantLimits {
    /// Returns the weight, which is never 0 because usage is divided by it. A cap, not a weight,
    /// stops a tenant.
    pub fn weight(&self) -> f64 {
        f64::from(self.weight_millis.max(1)) / 1_000.0
    }

    /// Returns whether all live attempts must be known before one more is admitted.
    pub fn has_caps(&self) -> bool {
        self.max_concurrent_tasks.is_some() || !self.pools.is_empty()
    }

    /// Returns the exhausted budget that stops this workspace.
    pub fn spent_budget(&self, workspace: &WorkspaceId) -> Option<&Arc<str>> {
        self.spent_budgets
            .get(&None)
            .or_else(|| self.spent_budgets.get(&Some(workspace.clone())))
    }

    /// Returns the slots that backfills get first. Rounded up, so that a floor is never 0 while
    /// there are slots.
    pub fn backfill_floor(&self, slots: u32) -> u32 {
        part(slots, self.backfill_floor_ppm, PPM - 1)
    }

    /// Returns the slots that backfills may hold while other runs wait.
    pub fn backfill_cap(&self, slots: u32) -> u32 {
        part(slots, self.backfill_cap_ppm, 0).max(self.backfill_floor(slots))
    }
}

fn part(slots: u32, ppm: u32, round: u64) -> u32 {
    let part = (u64::from(slots) * u64::from(ppm) + round) / PPM;
    u32::try_from(part).unwrap_or(u32::MAX)
}

/// A pause of admission.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pause {
    pub pause_id: Arc<str>,
    pub tenant: TenantScope,
    pub workspace: Option<WorkspaceId>,
    pub pool: Option<Arc<str>>,
}

/// The active pauses by scope.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pauses {
    all_tenants: BTreeSet<Pause>,
    tenants: BTreeMap<TenantId, BTreeSet<Pause>>,
}

impl Pauses {
    pub(crate) fn new(pauses: impl IntoIterator<Item = Pause>) -> Pauses {
        let mut all = Pauses::default();
        for pause in pauses {
            match pause.tenant.clone() {
                TenantScope::All => all.all_tenants.insert(pause),
                TenantScope::One(tenant) => all.tenants.entry(tenant).or_default().insert(pause),
            };
        }
        all
    }

    /// Returns a pause that covers tasks with this workspace and pool.
    pub(crate) fn blocking(
        &self,
        tenant: &TenantId,
        workspace: &WorkspaceId,
        pool: Option<&Arc<str>>,
    ) -> Option<&Pause> {
        self.of(tenant).find(|pause| {
            pause
                .workspace
                .as_ref()
                .is_none_or(|paused| paused == workspace)
                && pause
                    .pool
                    .as_ref()
                    .is_none_or(|paused| Some(paused) == pool)
        })
    }

    /// Iterates over the pauses of all tenants, then over those of this one.
    pub(crate) fn of(&self, tenant: &TenantId) -> impl Iterator<Item = &Pause> {
        self.all_tenants
            .iter()
            .chain(self.tenants.get(tenant).into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floor_rounds_up_and_cap_is_never_below_it() {
        let limits = TenantLimits::default();
        let check = |slots, floor, cap| {
            assert_eq!(
                (limits.backfill_floor(slots), limits.backfill_cap(slots)),
                (floor, cap),
                "{slots} slots"
            );
        };
        check(0, 0, 0);
        check(1, 1, 1);
        check(10, 1, 5);
        check(11, 2, 5);
        check(100, 10, 50);
    }

    #[test]
    fn pause_covers_only_what_it_names() {
        let (acme, other): (TenantId, TenantId) =
            ("acme".parse().unwrap(), "other".parse().unwrap());
        let (prod, dev): (WorkspaceId, WorkspaceId) =
            ("prod".parse().unwrap(), "dev".parse().unwrap());
        let pause = Pause {
            pause_id: "p".into(),
            tenant: (&acme).into(),
            workspace: Some(prod.clone()),
            pool: Some("db".into()),
        };
        let pauses = Pauses::new([pause]);
        let paused = |tenant, workspace, pool: Option<&str>| {
            pauses
                .blocking(tenant, workspace, pool.map(Arc::from).as_ref())
                .is_some()
        };
        assert!(paused(&acme, &prod, Some("db")));
        assert!(!paused(&acme, &prod, Some("api")));
        assert!(!paused(&acme, &prod, None));
        assert!(!paused(&acme, &dev, Some("db")));
        assert!(!paused(&other, &prod, Some("db")));
    }
}
