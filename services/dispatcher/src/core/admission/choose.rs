//! Choosing the tasks to claim.
//!
//! [`Admission::choose`] takes one task at a time from the tenant with the smallest share
//! ([`crate::core::fairness`]). Within the tenant it serves the queue with the highest priority
//! whose tasks are not blocked by a limit, a pause, a budget or the lack of a worker; among equal
//! priorities the one whose run has used least. Backfills have a floor (a part of the slots that
//! they get first, so that they always progress) and a cap (a part that they may not exceed while
//! other runs wait).
//!
//! The slot, the pool and the worker's credit are taken at once, before the scheduler answers, so
//! that no interleaving of answers exceeds a limit. A refused claim returns them.
//!
//! Only dirty tenants are considered: those for which something changed since the last pass found
//! nothing more to admit. Each choice checks every queue of its tenant once, so a pass costs as
//! much as it chooses times the number of queues, and not the number of ready tasks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use servo_model::{AttemptId, DispatchId, Epoch, RunId, TaskRef, TenantId, Timestamp, WorkerId};

use super::Admission;
use crate::core::demand::Demand;
use crate::core::fairness::Share;
use crate::core::limits::TenantLimits;
use crate::core::live::{DispatchDetails, LiveAttempt, Phase, Pool};
use crate::core::ready_queues::{QueueKey, ReadyEntry};
use crate::core::streams::SchedulerStreamId;
use crate::core::tenant::Tenant;

/// Claims in one message.
pub const CLAIMS_PER_BATCH_MAX: usize = servo_model::limits::ENVELOPES_PER_MESSAGE_MAX;

/// A task to claim. The worker's credit and the slot are already taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The stream to the scheduler that holds the run's shard.
    pub stream_id: SchedulerStreamId,
    pub tenant: TenantId,
    pub run: RunId,
    pub task: TaskRef,
    pub attempt: u32,
    pub attempt_id: AttemptId,
    pub admission_epoch: Epoch,
    pub worker: WorkerId,
    /// Delivered through the push queue.
    pub pushed: bool,
}

/// A task that was taken from its queue, and the worker it is meant for.
struct ChosenTask {
    run: RunId,
    task: TaskRef,
    ready: ReadyEntry,
    attempt_id: AttemptId,
    worker: WorkerId,
    stream_id: SchedulerStreamId,
    pushed: bool,
}

impl Admission {
    /// Chooses up to `at_most` tasks in fair order. Returns fewer only when nothing more can be
    /// admitted.
    pub fn choose(&mut self, now: Timestamp, at_most: usize) -> Vec<Claim> {
        let mut claims = Vec::new();
        if !self.limits.known {
            return claims;
        }
        let mut next: BinaryHeap<_> = self
            .dirty
            .iter()
            .map(|id| Reverse((self.share_of(id, now), id.clone())))
            .collect();
        while claims.len() < at_most {
            let Some(Reverse((_, id))) = next.pop() else {
                break;
            };
            match self.choose_one(&id, now) {
                Some(claim) => {
                    claims.push(claim);
                    next.push(Reverse((self.share_of(&id, now), id)));
                }
                None => {
                    self.dirty.remove(&id);
                }
            }
        }
        claims
    }

    /// Returns the tenant's usage per weight.
    pub(super) fn share_of(&self, id: &TenantId, now: Timestamp) -> Share {
        let seconds = self
            .tenants
            .get(id)
            .map_or(0.0, |tenant| tenant.usage.seconds(now, self.mean.seconds()));
        Share(seconds / self.limits.of(id).weight())
    }

    fn choose_one(&mut self, id: &TenantId, now: Timestamp) -> Option<Claim> {
        let shard = id.admission_shard();
        let admission_epoch = *self
            .held
            .get(&shard)
            .filter(|_| !self.leaving.contains(&shard))?;
        let limits = self.limits.of(id).clone();
        loop {
            let tenant = self
                .tenants
                .get(id)
                .filter(|tenant| self.may_start_one(tenant, &limits))?;
            let key = self.next_queue(id, tenant, &limits)?;
            let queue = tenant.ready_queues.get(&key)?;
            let (_, run) = queue.first()?;
            let task = queue.first_of(run)?;
            let stream_id = self.streams.stream_of(run.shard())?;
            let task_key = tenant.runs.get(&run)?.admission_plan.as_ref()?.key(task)?;
            let may_push = self.may_push(tenant, &limits);
            let worker = self.workers.take(id, &key.demand, may_push)?;
            let ready = self.tenants.get_mut(id)?.remove(run, task)?;
            let attempt_id = DispatchId::new(&run, &task_key, ready.attempt).attempt_id();
            // A stream that did not know of our claim on another stream offered the task again. The
            // attempt is live already, so this offer is dropped.
            if self.live.contains_key(&attempt_id) {
                self.workers.add_credits(&worker, 1);
                continue;
            }
            let attempt = ready.attempt;
            let pushed = self
                .workers
                .get(&worker)
                .is_some_and(|worker| worker.pushed);
            let worker = worker.id;
            let chosen = ChosenTask {
                run,
                task,
                ready,
                attempt_id,
                worker,
                stream_id,
                pushed,
            };
            self.begin_claim(id, &key, chosen, now);
            let tenant = id.clone();
            return Some(Claim {
                stream_id,
                tenant,
                run,
                task,
                attempt,
                attempt_id,
                admission_epoch,
                worker,
                pushed,
            });
        }
    }

    /// Counts the slot from now on, whether or not the claim is accepted.
    fn begin_claim(&mut self, id: &TenantId, key: &QueueKey, chosen: ChosenTask, now: Timestamp) {
        let Some(run) = self
            .tenants
            .get(id)
            .and_then(|tenant| tenant.runs.get(&chosen.run))
        else {
            return;
        };
        let details = DispatchDetails {
            failures: chosen.ready.failures,
            item_json: chosen.ready.item_json,
            trace: run.trace.clone(),
        };
        let live = LiveAttempt {
            attempt_id: chosen.attempt_id,
            tenant: id.clone(),
            run: chosen.run,
            plan: run.plan_ref.clone(),
            task: chosen.task,
            attempt: chosen.ready.attempt,
            worker: Some(chosen.worker),
            since: now,
            backfill: key.backfill,
            cancelling: false,
            pushed: chosen.pushed,
            pool: key.demand.pool.clone().map_or(Pool::None, Pool::Named),
            phase: Phase::Claiming(chosen.stream_id),
            sent_to: None,
            details: Some(Arc::new(details)),
            charged_seconds: self.mean.seconds(),
            counted_in_run: false,
        };
        self.add_live(live);
    }

    /// Returns whether the tenant's limits allow one more attempt.
    fn may_start_one(&self, tenant: &Tenant, limits: &TenantLimits) -> bool {
        !limits.suspended
            && limits
                .max_concurrent_tasks
                .is_none_or(|max| tenant.live < max)
            && (!limits.has_caps() || self.streams.is_complete(tenant.admission_shard))
    }

    /// Returns whether one more attempt may be pushed. With a limit, only once all live attempts
    /// are known.
    pub(super) fn may_push(&self, tenant: &Tenant, limits: &TenantLimits) -> bool {
        let has_capacity =
            |max| tenant.live_pushed < max && self.streams.is_complete(tenant.admission_shard);
        limits.max_queued_tasks.is_none_or(has_capacity)
    }

    /// Returns the queue that is served next: the highest priority, then the run with the smallest
    /// share, within the floor and the cap for backfills.
    fn next_queue(
        &self,
        id: &TenantId,
        tenant: &Tenant,
        limits: &TenantLimits,
    ) -> Option<QueueKey> {
        let slots = limits
            .max_concurrent_tasks
            .unwrap_or_else(|| self.workers.slots(id));
        let best = |backfill: Option<bool>| {
            let open = tenant.ready_queues.iter().filter(|(key, _)| {
                backfill.is_none_or(|wanted| key.backfill == wanted)
                    && self.queue_is_open(id, tenant, limits, key)
            });
            let ranked = open.filter_map(|(key, queue)| Some((key.priority, queue.first()?, key)));
            ranked.min().map(|(.., key)| key.clone())
        };
        let below_floor = tenant.live_backfill < limits.backfill_floor(slots);
        let at_cap = tenant.live_backfill >= limits.backfill_cap(slots);
        let preferred = match (below_floor, at_cap) {
            (true, _) => best(Some(true)),
            (false, true) => best(Some(false)),
            (false, false) => None,
        };
        preferred.or_else(|| best(None))
    }

    fn queue_is_open(
        &self,
        id: &TenantId,
        tenant: &Tenant,
        limits: &TenantLimits,
        key: &QueueKey,
    ) -> bool {
        self.demand_is_allowed(id, tenant, limits, &key.demand)
            && self
                .workers
                .find(id, &key.demand, self.may_push(tenant, limits))
                .is_some()
    }

    /// Returns whether no pool, pause or budget blocks tasks with this demand.
    pub(super) fn demand_is_allowed(
        &self,
        id: &TenantId,
        tenant: &Tenant,
        limits: &TenantLimits,
        demand: &Demand,
    ) -> bool {
        let pool_is_free = |pool: &Arc<str>| {
            limits
                .pools
                .get(pool)
                .is_none_or(|slots| tenant.pool_used(pool) < *slots)
        };
        demand.pool.as_ref().is_none_or(pool_is_free)
            && self
                .pauses
                .blocking(id, &demand.workspace, demand.pool.as_ref())
                .is_none()
            && limits.spent_budget(&demand.workspace).is_none()
    }
}
