//! Why a ready task is not admitted: the first thing that stands in its way.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_model::{AttemptId, RunId, TenantId};

use super::admission::Admission;
use super::demand::{Demand, Task};
use super::fairness::Share;
use super::lanes::LaneKey;
use super::limits::{Pause, TenantLimits};
use super::tenant::Tenant;

/// How many holders of a full pool are named.
const HOLDERS_NAMED_MAX: usize = 10;

/// What a task waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not among the ready tasks here: it was claimed, or is not ready.
    NotReady,
    /// The authority on limits has not answered yet.
    LimitsUnknown,
    /// The tenant is suspended.
    Suspended,
    Paused(Pause),
    /// The budget of this id is spent.
    BudgetSpent(Arc<str>),
    /// A limit counts, and some shard of runs has not told its live attempts yet.
    LiveUnknown,
    TaskLimit {
        limit: u32,
        used: u32,
    },
    /// The queue holds as many as it may, and nobody who can run it pulls.
    QueueLimit {
        limit: u32,
        used: u32,
    },
    PoolFull {
        pool: Arc<str>,
        limit: u32,
        used: u32,
        holders: Vec<AttemptId>,
    },
    /// The plan is being read.
    PlanUnread,
    NoWorker,
    /// Workers are there, but none that could run it; these capabilities are missing everywhere.
    NoCapableWorker {
        missing: Vec<Arc<str>>,
    },
    BackfillCap {
        limit: u32,
        used: u32,
    },
    /// Others are before it: this many of its tenant.
    FairShare {
        before: usize,
    },
}

impl Admission {
    pub(crate) fn explain(&self, id: &TenantId, run: RunId, task: Task) -> Wait {
        let Some(tenant) = self.tenants.get(id) else {
            return Wait::NotReady;
        };
        let Some(waiting) = tenant.runs.get(&run) else {
            return Wait::NotReady;
        };
        if waiting.unread.contains_key(&task) {
            return Wait::PlanUnread;
        }
        let holding = waiting.lanes.iter().find(|key| {
            tenant
                .lanes
                .get(key)
                .is_some_and(|lane| lane.holds(run, task))
        });
        let Some(key) = holding else {
            return Wait::NotReady;
        };
        let limits = self.limits.of(id);
        self.forbidden(id, limits, &key.demand)
            .or_else(|| self.at_limit(tenant, limits, &key.demand))
            .or_else(|| self.without_worker(id, &key.demand))
            .or_else(|| self.queue_full(id, tenant, limits, &key.demand))
            .or_else(|| self.backfill_cap(id, tenant, limits, key))
            .unwrap_or_else(|| Wait::FairShare {
                before: before(tenant, key, run, waiting.share, task),
            })
    }

    fn forbidden(&self, id: &TenantId, limits: &TenantLimits, demand: &Demand) -> Option<Wait> {
        if !self.limits.known {
            return Some(Wait::LimitsUnknown);
        }
        if limits.suspended {
            return Some(Wait::Suspended);
        }
        let pause = self
            .pauses
            .in_the_way(id, &demand.workspace, demand.pool.as_ref());
        let budget = || limits.spent_budget(&demand.workspace);
        pause
            .cloned()
            .map(Wait::Paused)
            .or_else(|| budget().cloned().map(Wait::BudgetSpent))
    }

    fn at_limit(&self, tenant: &Tenant, limits: &TenantLimits, demand: &Demand) -> Option<Wait> {
        if limits.counts() && !self.streams.all_told(tenant.admission_shard) {
            return Some(Wait::LiveUnknown);
        }
        if let Some(limit) = limits
            .max_concurrent_tasks
            .filter(|max| tenant.live >= *max)
        {
            return Some(Wait::TaskLimit {
                limit,
                used: tenant.live,
            });
        }
        let pool = demand.pool.as_ref()?;
        let (limit, used) = (*limits.pools.get(pool)?, tenant.pool_used(pool));
        let holders = tenant
            .pools
            .get(pool)
            .into_iter()
            .flatten()
            .take(HOLDERS_NAMED_MAX)
            .copied();
        (used >= limit).then(|| Wait::PoolFull {
            pool: pool.clone(),
            limit,
            used,
            holders: holders.collect(),
        })
    }

    fn without_worker(&self, id: &TenantId, demand: &Demand) -> Option<Wait> {
        if self.workers.serving(id).next().is_none() {
            return Some(Wait::NoWorker);
        }
        if self
            .workers
            .serving(id)
            .any(|worker| worker.can_run(demand))
        {
            return None;
        }
        let offered: BTreeSet<&Arc<str>> = self
            .workers
            .serving(id)
            .flat_map(|worker| worker.capabilities.iter().chain(&worker.handlers))
            .collect();
        let wanted = demand.capabilities.iter().chain(&demand.handler);
        Some(Wait::NoCapableWorker {
            missing: wanted
                .filter(|name| !offered.contains(name))
                .cloned()
                .collect(),
        })
    }

    fn queue_full(
        &self,
        id: &TenantId,
        tenant: &Tenant,
        limits: &TenantLimits,
        demand: &Demand,
    ) -> Option<Wait> {
        let limit = limits
            .max_queued_tasks
            .filter(|_| !self.may_push(tenant, limits))?;
        let only_pushed = self.workers.find(id, demand, false).is_none()
            && self
                .workers
                .serving(id)
                .any(|worker| worker.pushed && worker.can_run(demand));
        let used = tenant.live_pushed;
        let wait = if used < limit {
            Wait::LiveUnknown
        } else {
            Wait::QueueLimit { limit, used }
        };
        only_pushed.then_some(wait)
    }

    fn backfill_cap(
        &self,
        id: &TenantId,
        tenant: &Tenant,
        limits: &TenantLimits,
        key: &LaneKey,
    ) -> Option<Wait> {
        let slots = limits
            .max_concurrent_tasks
            .unwrap_or_else(|| self.workers.slots(id));
        let (limit, used) = (limits.backfill_cap(slots), tenant.live_backfill);
        (key.backfill && used >= limit).then_some(Wait::BackfillCap { limit, used })
    }
}

/// Tasks of the tenant that would be chosen before this one.
fn before(tenant: &Tenant, key: &LaneKey, run: RunId, share: Share, task: Task) -> usize {
    let higher = tenant
        .lanes
        .iter()
        .filter(|(other, _)| other.priority < key.priority);
    let in_lane = tenant
        .lanes
        .get(key)
        .map_or(0, |lane| lane.before(run, share, task));
    in_lane + higher.map(|(_, lane)| lane.len()).sum::<usize>()
}
