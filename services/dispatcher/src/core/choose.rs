//! Choosing what is claimed next. The cost is that of what is chosen, plus one look per lane that is blocked.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use servo_model::{AttemptId, DispatchId, RunId, TenantId, WorkerId};

use super::Seconds;
use super::admission::Admission;
use super::demand::Task;
use super::fairness::Share;
use super::lanes::{LaneKey, Ready};
use super::limits::TenantLimits;
use super::live::{Live, Order, Phase, Pool};
use super::streams::SourceId;
use super::tenant::Tenant;

/// Claims in one message.
pub const CLAIMS_PER_BATCH_MAX: usize = servo_model::limits::ENVELOPES_PER_MESSAGE_MAX;

/// A task to be claimed. Its worker's credit is taken, and its slot is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The stream to the owner of the run's shard.
    pub source: SourceId,
    pub tenant: TenantId,
    pub run: RunId,
    pub task: Task,
    pub attempt: u32,
    pub attempt_id: AttemptId,
    pub admission_epoch: u64,
    pub worker: WorkerId,
    /// Travels through the queue.
    pub pushed: bool,
}

struct Claim {
    run: RunId,
    task: Task,
    ready: Ready,
    attempt_id: AttemptId,
    worker: WorkerId,
    source: SourceId,
    pushed: bool,
}

impl Admission {
    /// Up to `at_most` tasks, in fair order. Fewer only when nothing more can be admitted.
    pub fn choose(&mut self, now: Seconds, at_most: usize) -> Vec<Chosen> {
        let mut chosen = Vec::new();
        if !self.limits.known {
            return chosen;
        }
        let mut next: BinaryHeap<_> = self
            .stirred
            .iter()
            .map(|id| Reverse((self.share_of(id, now), id.clone())))
            .collect();
        while chosen.len() < at_most {
            let Some(Reverse((_, id))) = next.pop() else {
                break;
            };
            match self.choose_one(&id, now) {
                Some(claim) => {
                    chosen.push(claim);
                    next.push(Reverse((self.share_of(&id, now), id)));
                }
                None => {
                    self.stirred.remove(&id);
                }
            }
        }
        chosen
    }

    /// What a tenant had, for its weight.
    pub(super) fn share_of(&self, id: &TenantId, now: Seconds) -> Share {
        let seconds = self
            .tenants
            .get(id)
            .map_or(0.0, |tenant| tenant.usage.seconds(now, self.mean.get()));
        Share(seconds / self.limits.of(id).weight())
    }

    fn choose_one(&mut self, id: &TenantId, now: Seconds) -> Option<Chosen> {
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
            let key = self.next_lane(id, tenant, &limits)?;
            let lane = tenant.lanes.get(&key)?;
            let (_, run) = lane.first()?;
            let task = lane.first_of(run)?;
            let source = self.streams.source_of(run.shard())?;
            let task_key = tenant.runs.get(&run)?.shape.as_ref()?.key(task)?;
            let may_push = self.may_push(tenant, &limits);
            let worker = self.workers.take(id, &key.demand, may_push)?;
            let ready = self.tenants.get_mut(id)?.take(run, task)?;
            let attempt_id = DispatchId::new(&run, &task_key, ready.attempt).attempt_id();
            // Offered again by a stream that had not heard of our claim on another: it is under way, and one claim is enough.
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
            let claim = Claim {
                run,
                task,
                ready,
                attempt_id,
                worker,
                source,
                pushed,
            };
            self.begin_claim(id, &key, claim, now);
            let tenant = id.clone();
            return Some(Chosen {
                source,
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

    /// The slot counts from now on, whatever becomes of the claim.
    fn begin_claim(&mut self, id: &TenantId, key: &LaneKey, claim: Claim, now: Seconds) {
        let Some(run) = self
            .tenants
            .get(id)
            .and_then(|tenant| tenant.runs.get(&claim.run))
        else {
            return;
        };
        let order = Order {
            failures: claim.ready.failures,
            item_json: claim.ready.item_json,
            trace: run.trace.clone(),
        };
        let live = Live {
            attempt_id: claim.attempt_id,
            tenant: id.clone(),
            run: claim.run,
            plan: run.plan.clone(),
            task: claim.task,
            attempt: claim.ready.attempt,
            worker: Some(claim.worker),
            since: now,
            backfill: key.backfill,
            cancelling: false,
            pushed: claim.pushed,
            pool: key.demand.pool.clone().map_or(Pool::None, Pool::Named),
            phase: Phase::Claiming(claim.source),
            sent_to: None,
            order: Some(Arc::new(order)),
            charged: self.mean.get(),
        };
        self.begin(live);
    }

    /// The tenant as a whole may have one more attempt.
    fn may_start_one(&self, tenant: &Tenant, limits: &TenantLimits) -> bool {
        !limits.suspended
            && limits
                .max_concurrent_tasks
                .is_none_or(|max| tenant.live < max)
            && (!limits.counts() || self.streams.all_told(tenant.admission_shard))
    }

    /// Whether one more attempt may go through the queue; where that is limited, only when all that is there is known.
    pub(super) fn may_push(&self, tenant: &Tenant, limits: &TenantLimits) -> bool {
        let has_room =
            |max| tenant.live_pushed < max && self.streams.all_told(tenant.admission_shard);
        limits.max_queued_tasks.is_none_or(has_room)
    }

    /// The lane that is served next: that of the highest priority, among equals the one whose run had least, with a
    /// floor and a cap for backfills.
    fn next_lane(&self, id: &TenantId, tenant: &Tenant, limits: &TenantLimits) -> Option<LaneKey> {
        let slots = limits
            .max_concurrent_tasks
            .unwrap_or_else(|| self.workers.slots(id));
        let best = |backfill: Option<bool>| {
            let open = tenant.lanes.iter().filter(|(key, _)| {
                backfill.is_none_or(|wanted| key.backfill == wanted)
                    && self.lane_is_open(id, tenant, limits, key)
            });
            let ranked = open.filter_map(|(key, lane)| Some((key.priority, lane.first()?, key)));
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

    fn lane_is_open(
        &self,
        id: &TenantId,
        tenant: &Tenant,
        limits: &TenantLimits,
        key: &LaneKey,
    ) -> bool {
        let demand = &key.demand;
        let pool_is_free = |pool: &Arc<str>| {
            limits
                .pools
                .get(pool)
                .is_none_or(|slots| tenant.pool_used(pool) < *slots)
        };
        demand.pool.as_ref().is_none_or(pool_is_free)
            && self
                .pauses
                .in_the_way(id, &demand.workspace, demand.pool.as_ref())
                .is_none()
            && limits.spent_budget(&demand.workspace).is_none()
            && self
                .workers
                .find(id, demand, self.may_push(tenant, limits))
                .is_some()
    }
}
