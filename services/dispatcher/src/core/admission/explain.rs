//! Why a ready task is not admitted: the first obstacle.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_model::{AttemptId, RunId, TaskRef, TenantId};

use super::Admission;
use crate::core::demand::Demand;
use crate::core::fairness::Share;
use crate::core::limits::{Pause, TenantLimits};
use crate::core::ready_queues::QueueKey;
use crate::core::tenant::Tenant;

/// How many attempts that hold slots of a full pool are named.
const HOLDERS_NAMED_MAX: usize = 10;

/// The reason why a task waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not among the ready tasks here: it was claimed or is not ready.
    NotReady,
    /// The quota service has not sent the limits yet.
    LimitsUnknown,
    Suspended,
    Paused(Pause),
    /// The budget with this id is exhausted.
    BudgetSpent(Arc<str>),
    /// The tenant has a cap, and some execution shard has not reported its live attempts yet.
    LiveUnknown,
    TaskLimit {
        limit: u32,
        used: u32,
    },
    /// The push queue holds as many attempts as allowed, and no worker that pulls can run the task.
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
    /// The plan is being loaded.
    PlanNotLoaded,
    NoWorker,
    /// Workers are connected, but none can run the task. No worker has these capabilities and
    /// handlers.
    NoCapableWorker {
        missing: Vec<Arc<str>>,
    },
    /// Backfills hold the slots that they may hold while other runs wait.
    BackfillCap {
        limit: u32,
        used: u32,
    },
    /// At least this many tasks of the tenant are served before it.
    FairShare {
        before: usize,
    },
}

impl Admission {
    pub(crate) fn explain(&self, id: &TenantId, run: RunId, task: TaskRef) -> Wait {
        let Some(tenant) = self.tenants.get(id) else {
            return Wait::NotReady;
        };
        let Some(waiting) = tenant.runs.get(&run) else {
            return Wait::NotReady;
        };
        if waiting.awaiting_plan.contains_key(&task) {
            return Wait::PlanNotLoaded;
        }
        let holding = waiting.queue_keys.iter().find(|key| {
            tenant
                .ready_queues
                .get(key)
                .is_some_and(|queue| queue.holds(run, task))
        });
        let Some(key) = holding else {
            return Wait::NotReady;
        };
        let limits = self.limits.of(id);
        self.blocked_by_operator(id, limits, &key.demand)
            .or_else(|| self.at_limit(tenant, limits, &key.demand))
            .or_else(|| self.without_worker(id, &key.demand))
            .or_else(|| self.queue_full(id, tenant, limits, &key.demand))
            .or_else(|| self.backfill_cap(id, tenant, limits, key))
            .unwrap_or_else(|| Wait::FairShare {
                before: before(tenant, key, run, waiting.share, task),
            })
    }

    fn blocked_by_operator(
        &self,
        id: &TenantId,
        limits: &TenantLimits,
        demand: &Demand,
    ) -> Option<Wait> {
        if !self.limits.known {
            return Some(Wait::LimitsUnknown);
        }
        if limits.suspended {
            return Some(Wait::Suspended);
        }
        let pause = self
            .pauses
            .blocking(id, &demand.workspace, demand.pool.as_ref());
        let budget = || limits.spent_budget(&demand.workspace);
        pause
            .cloned()
            .map(Wait::Paused)
            .or_else(|| budget().cloned().map(Wait::BudgetSpent))
    }

    fn at_limit(&self, tenant: &Tenant, limits: &TenantLimits, demand: &Demand) -> Option<Wait> {
        if limits.has_caps() && !self.streams.is_complete(tenant.admission_shard) {
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
        let present: BTreeSet<&Arc<str>> = self
            .workers
            .serving(id)
            .flat_map(|worker| worker.capabilities.iter().chain(&worker.handlers))
            .collect();
        let wanted = demand.capabilities.iter().chain(&demand.handler);
        Some(Wait::NoCapableWorker {
            missing: wanted
                .filter(|name| !present.contains(name))
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

    /// The cap applies only while a task of another run can take the slots that the task could.
    fn backfill_cap(
        &self,
        id: &TenantId,
        tenant: &Tenant,
        limits: &TenantLimits,
        key: &QueueKey,
    ) -> Option<Wait> {
        let slots = limits
            .max_concurrent_tasks
            .unwrap_or_else(|| self.workers.slots(id));
        let (limit, used) = (limits.backfill_cap(slots), tenant.live_backfill);
        let may_push = self.may_push(tenant, limits);
        let competes = |other: &QueueKey| {
            !other.backfill
                && self.demand_is_allowed(id, tenant, limits, &other.demand)
                && self.workers.serving(id).any(|worker| {
                    (may_push || !worker.pushed)
                        && worker.can_run(&key.demand)
                        && worker.can_run(&other.demand)
                })
        };
        let applies = key.backfill
            && used >= limit
            && tenant.ready_queues.iter().any(|(other, _)| competes(other));
        applies.then_some(Wait::BackfillCap { limit, used })
    }
}

/// Counts the tenant's tasks ahead of this one. At least this many are served before it: tasks in
/// other queues of the same priority are not counted.
fn before(tenant: &Tenant, key: &QueueKey, run: RunId, share: Share, task: TaskRef) -> usize {
    let higher = tenant
        .ready_queues
        .iter()
        .filter(|(other, _)| other.priority < key.priority);
    let in_queue = tenant
        .ready_queues
        .get(key)
        .map_or(0, |queue| queue.before(run, share, task));
    in_queue + higher.map(|(_, queue)| queue.len()).sum::<usize>()
}
