//! Applying the messages of schedulers: snapshots, updates and the results of claims.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use servo_model::{
    AdmissionShard, AttemptId, RunId, ShardId, TaskKey, TaskRef, TenantId, Timestamp,
};

use super::messages::{Ended, ReadyRun, Snapshot, SnapshotAttempt, Update, Withdrawn};
use super::{Admission, AwaitingPlan, Effect};
use crate::core::demand::{AdmissionPlan, PlanRef};
use crate::core::live::{LiveAttempt, Phase, Pool};
use crate::core::ready_queues::ReadyEntry;
use crate::core::streams::SchedulerStreamId;
use crate::core::tenant::Tenant;
use crate::core::workers::{Worker, WorkerKey};

/// Below this many plans the map is not searched for unused ones.
const UNUSED_PLANS_MIN: usize = 64;

impl Admission {
    /// Records that a stream was opened for these admission shards.
    pub fn stream_opened(
        &mut self,
        stream_id: SchedulerStreamId,
        admission_shards: impl IntoIterator<Item = AdmissionShard>,
    ) {
        self.streams.open(stream_id, admission_shards);
    }

    /// Returns whether all claims on a stream are answered.
    pub fn has_no_pending_claims(&self, stream_id: SchedulerStreamId) -> bool {
        self.streams.pending_batches(stream_id) == 0
    }

    /// Removes a closed stream. Tasks that were ready on its shards are dropped, because another
    /// scheduler may hold the shards now; live attempts stay counted.
    pub fn stream_closed(&mut self, stream_id: SchedulerStreamId) {
        let (detached, unanswered) = self.streams.close(stream_id);
        for attempt in unanswered {
            if let Some(live) = self.live.get_mut(&attempt)
                && live.phase == Phase::Claiming(stream_id)
            {
                live.phase = Phase::Unsure;
            }
        }
        detached
            .into_iter()
            .for_each(|shard| self.drop_ready(shard));
    }

    /// Stops claiming on a stream that is about to be closed. Claims that were sent are still
    /// answered on it.
    pub fn stream_retired(&mut self, stream_id: SchedulerStreamId) {
        let detached = self.streams.detach(stream_id);
        detached
            .into_iter()
            .for_each(|shard| self.drop_ready(shard));
    }

    /// Drops the ready tasks of a shard that the scheduler behind this stream no longer holds.
    pub fn shard_gone(&mut self, stream_id: SchedulerStreamId, shard: ShardId) {
        if self.streams.stream_of(shard) != Some(stream_id) {
            return;
        }
        if let Some(state) = self.streams.shard(shard) {
            state.stream_id = None;
        }
        self.drop_ready(shard);
    }

    /// Collects the parts of a snapshot. The last part replaces what was known of the shard.
    pub fn apply_snapshot(&mut self, stream_id: SchedulerStreamId, part: Snapshot, now: Timestamp) {
        if !self.streams.is_open(stream_id) {
            return;
        }
        let Some(state) = self.streams.shard(part.shard) else {
            return;
        };
        if part.epoch < state.epoch {
            return;
        }
        let gathered = match state.partial.take() {
            Some((from, mut whole)) if from == stream_id && !part.first => {
                whole.ready.extend(part.ready);
                whole.live.extend(part.live);
                Snapshot {
                    last: part.last,
                    ..whole
                }
            }
            _ if part.first => part,
            _ => return,
        };
        if gathered.last {
            self.replace_shard(stream_id, gathered, now);
        } else {
            state.partial = Some((stream_id, gathered));
        }
    }

    fn replace_shard(&mut self, stream_id: SchedulerStreamId, whole: Snapshot, now: Timestamp) {
        self.drop_ready(whole.shard);
        let reported: BTreeSet<AttemptId> = whole.live.iter().map(|live| live.attempt_id).collect();
        let mut ended: Vec<AttemptId> = (self.live.values())
            .filter(|live| live.run.shard() == whole.shard && !reported.contains(&live.attempt_id))
            // A claim on this same stream is answered after the snapshot.
            .filter(|live| live.phase != Phase::Claiming(stream_id))
            .map(|live| live.attempt_id)
            .collect();
        ended.sort_unstable();
        ended
            .into_iter()
            .for_each(|attempt| self.end_attempt(attempt, None, now));
        self.streams.complete(whole.shard, stream_id, whole.epoch);
        whole
            .live
            .into_iter()
            .for_each(|live| self.apply_live(stream_id, live));
        whole
            .ready
            .into_iter()
            .for_each(|run| self.apply_ready(run, now));
        // This snapshot may be the last one that the tenants' caps were waiting for.
        self.mark_all_dirty();
    }

    pub fn apply_update(&mut self, stream_id: SchedulerStreamId, update: Update, now: Timestamp) {
        if self.streams.stream_of(update.shard) != Some(stream_id) {
            return;
        }
        // The order matters: ready tasks are added before ended attempts are removed, because a run
        // with neither is forgotten together with its share.
        update
            .withdrawn
            .into_iter()
            .for_each(|withdrawn| self.apply_withdrawn(&withdrawn));
        update
            .ready
            .into_iter()
            .for_each(|run| self.apply_ready(run, now));
        update
            .ended
            .into_iter()
            .for_each(|ended| self.apply_ended(ended, now));
        update
            .cancelled
            .into_iter()
            .for_each(|attempt| self.apply_cancel(attempt));
    }

    /// Records a batch of claims that was sent.
    pub fn claims_sent(
        &mut self,
        stream_id: SchedulerStreamId,
        number: u64,
        claims: Vec<AttemptId>,
    ) {
        self.streams.add_batch(stream_id, number, claims);
    }

    /// Applies the answer to a batch: every claim that is not refused counts.
    pub fn claim_results(
        &mut self,
        stream_id: SchedulerStreamId,
        number: u64,
        refused: &BTreeSet<u32>,
        now: Timestamp,
    ) {
        for (index, attempt) in (0..).zip(self.streams.take_batch(stream_id, number)) {
            if self
                .live
                .get(&attempt)
                .is_none_or(|live| live.phase != Phase::Claiming(stream_id))
            {
                continue;
            }
            if refused.contains(&index) {
                self.end_attempt(attempt, Some(Duration::ZERO), now);
            } else {
                self.claim_accepted(attempt);
            }
        }
    }

    /// Queues the tasks and counts the live attempts that were waiting for this plan.
    pub fn plan_loaded(
        &mut self,
        plan: &PlanRef,
        admission_plan: &Arc<AdmissionPlan>,
        now: Timestamp,
    ) {
        self.forget_unused_plans();
        self.plans
            .insert(plan.clone(), Arc::downgrade(admission_plan));
        let Some(awaiting) = self.awaiting_plan.remove(plan) else {
            return;
        };
        if !self.holds(&plan.tenant) {
            return;
        }
        self.raise_returning_tenant(&plan.tenant, now);
        let Some(tenant) = self.tenants.get_mut(&plan.tenant) else {
            return;
        };
        for run in awaiting.runs {
            tenant.plan_loaded(run, admission_plan);
        }
        for attempt in awaiting.attempts {
            let Some(live) = self
                .live
                .get_mut(&attempt)
                .filter(|live| live.pool == Pool::Unknown)
            else {
                continue;
            };
            live.pool = pool_of(admission_plan, live.task);
            tenant.pool_known(live);
        }
        self.dirty.insert(plan.tenant.clone());
    }

    /// Returns the stream to the scheduler that holds the run's shard.
    pub fn stream_of(&self, run: RunId) -> Option<SchedulerStreamId> {
        self.streams.stream_of(run.shard())
    }

    /// Returns the key of a task whose plan is in use.
    pub fn task_key(&self, plan: &PlanRef, task: TaskRef) -> Option<TaskKey> {
        self.plans.get(plan)?.upgrade()?.key(task)
    }
}

impl Admission {
    /// Removes map entries of plans that are no longer in use, once most entries are such.
    fn forget_unused_plans(&mut self) {
        if self.plans.len() > 2 * self.plans_in_use.max(UNUSED_PLANS_MIN) {
            self.plans
                .retain(|_, admission_plan| admission_plan.strong_count() > 0);
            self.plans_in_use = self.plans.len();
        }
    }

    fn drop_ready(&mut self, shard: ShardId) {
        for tenant in self.tenants.values_mut() {
            let runs: Vec<RunId> = tenant
                .runs
                .keys()
                .filter(|run| run.shard() == shard)
                .copied()
                .collect();
            runs.into_iter().for_each(|run| tenant.remove_all(run));
        }
    }

    fn apply_ready(&mut self, ready_run: ReadyRun, now: Timestamp) {
        let id = ready_run.plan.tenant.clone();
        if !self.holds(&id) || ready_run.tasks.is_empty() {
            return;
        }
        self.raise_returning_tenant(&id, now);
        let admission_plan = self.known_plan(&ready_run.plan);
        let tenant = self
            .tenants
            .entry(id.clone())
            .or_insert_with(|| Tenant::new(&id));
        let run = tenant.upsert_run(&ready_run, admission_plan);
        if run.admission_plan.is_none() {
            awaiting(&ready_run.plan, &mut self.awaiting_plan, &mut self.effects)
                .runs
                .insert(ready_run.run);
        }
        for task in ready_run.tasks {
            let queued = ReadyEntry {
                attempt: task.attempt,
                failures: task.failures,
                item_json: task.item_json.into(),
            };
            tenant.enqueue(ready_run.run, task.task, queued);
        }
        self.dirty.insert(id);
    }

    /// Raises a tenant that returns from idle to the lowest usage per weight among active tenants.
    /// The estimated cost of their live attempts is left out: it is refunded when attempts end,
    /// several at once, so counting it would make the newcomer wait for usage that never happened.
    fn raise_returning_tenant(&mut self, id: &TenantId, now: Timestamp) {
        if self.tenants.get(id).is_some_and(Tenant::is_active) {
            return;
        }
        let active = self.tenants.iter().filter(|(_, tenant)| tenant.is_active());
        let least = active
            .map(|(id, tenant)| tenant.usage.accrued(now) / self.limits.of(id).weight())
            .min_by(f64::total_cmp);
        let weight = self.limits.of(id).weight();
        let tenant = self
            .tenants
            .entry(id.clone())
            .or_insert_with(|| Tenant::new(id));
        tenant
            .usage
            .raise_to(least.unwrap_or_default() * weight, now);
    }

    fn apply_withdrawn(&mut self, withdrawn: &Withdrawn) {
        if let Some(tenant) = self.tenants.get_mut(&withdrawn.tenant) {
            tenant.remove_all(withdrawn.run);
        }
    }

    /// Adds a live attempt of a snapshot. It was claimed by an earlier dispatcher, or by this one
    /// and the answer was lost.
    fn apply_live(&mut self, stream_id: SchedulerStreamId, reported: SnapshotAttempt) {
        if !self.holds(&reported.plan.tenant) {
            return;
        }
        if let Some(live) = self.live.get_mut(&reported.attempt_id) {
            live.cancelling |= reported.cancelling;
            let on_other_stream = matches!(live.phase, Phase::Claiming(on) if on != stream_id);
            if live.phase == Phase::Unsure || on_other_stream {
                self.claim_accepted(reported.attempt_id);
            } else if live.phase == Phase::Delivering && reported.unsent.is_some() {
                // The queue may have the envelope although the scheduler does not know it.
                // Enqueuing it again under the same name is idempotent and reports it again.
                self.order_delivery(reported.attempt_id);
            }
            return;
        }
        let admission_plan = self.known_plan(&reported.plan);
        if admission_plan.is_none() {
            let waiting = awaiting(&reported.plan, &mut self.awaiting_plan, &mut self.effects);
            waiting.attempts.insert(reported.attempt_id);
        }
        let details = reported.unsent.map(Arc::new);
        let attempt = reported.attempt_id;
        let live = LiveAttempt {
            attempt_id: reported.attempt_id,
            tenant: reported.plan.tenant.clone(),
            run: reported.run,
            task: reported.task,
            attempt: reported.attempt,
            worker: reported.worker,
            since: reported.since,
            backfill: reported.backfill,
            cancelling: reported.cancelling,
            pushed: reported.pushed,
            pool: admission_plan.map_or(Pool::Unknown, |admission_plan| {
                pool_of(&admission_plan, reported.task)
            }),
            phase: if details.is_some() {
                Phase::Accepted
            } else {
                Phase::Delivering
            },
            sent_to: None,
            details,
            charged_seconds: 0.0,
            counted_in_run: false,
            plan: reported.plan,
        };
        self.add_live(live);
        self.deliver_if_unsent(attempt);
    }

    /// Delivers an attempt that an earlier dispatcher claimed and that the queue is not known to
    /// have.
    fn deliver_if_unsent(&mut self, attempt: AttemptId) {
        if self
            .live
            .get(&attempt)
            .is_some_and(|live| live.phase == Phase::Accepted && !live.cancelling)
        {
            self.order_delivery(attempt);
        }
    }

    fn claim_accepted(&mut self, attempt: AttemptId) {
        let Some(live) = self.live.get_mut(&attempt) else {
            return;
        };
        live.phase = Phase::Accepted;
        if !live.cancelling {
            self.order_delivery(attempt);
        }
    }

    fn apply_ended(&mut self, ended: Ended, now: Timestamp) {
        self.mean.learn(ended.held);
        self.end_attempt(ended.attempt_id, Some(ended.held), now);
    }

    fn apply_cancel(&mut self, attempt: AttemptId) {
        let Some(live) = self.live.get_mut(&attempt) else {
            return;
        };
        if std::mem::replace(&mut live.cancelling, true) {
            return;
        }
        let live = &*live;
        let Some(id) = live.worker.filter(|_| live.phase == Phase::Delivering) else {
            return self.withhold(attempt);
        };
        let own = || WorkerKey {
            tenant: (&live.tenant).into(),
            id,
        };
        let worker = self
            .workers
            .named(&live.tenant, id)
            .map_or_else(own, Worker::key);
        self.effects.push(Effect::Cancel { worker, attempt });
    }

    fn known_plan(&mut self, plan: &PlanRef) -> Option<Arc<AdmissionPlan>> {
        let admission_plan = self.plans.get(plan)?.upgrade();
        if admission_plan.is_none() {
            self.plans.remove(plan);
        }
        admission_plan
    }
}

/// Returns no pool for a task that the plan does not contain.
pub(super) fn pool_of(admission_plan: &AdmissionPlan, task: TaskRef) -> Pool {
    let pool = admission_plan
        .asset_of(task)
        .and_then(|(_, demand, _)| demand.pool.clone());
    pool.map_or(Pool::None, Pool::Named)
}

/// Returns what waits for this plan. The first caller requests the plan.
fn awaiting<'a>(
    plan: &PlanRef,
    awaiting_plan: &'a mut HashMap<PlanRef, AwaitingPlan>,
    effects: &mut Vec<Effect>,
) -> &'a mut AwaitingPlan {
    awaiting_plan.entry(plan.clone()).or_insert_with(|| {
        effects.push(Effect::LoadPlan(plan.clone()));
        AwaitingPlan::default()
    })
}
