//! The state of admission: ready tasks, live attempts and connected workers of the tenants that
//! this instance admits.
//!
//! The engine applies every message to this state and then carries out the resulting [`Effect`]s.
//! `apply.rs` applies the messages of schedulers, `choose.rs` picks the tasks to claim,
//! `explain.rs` says why a task waits. This file handles shards, limits and workers.

mod apply;
mod choose;
mod explain;
mod limit_counts;
mod load;
mod messages;

pub use choose::{CLAIMS_PER_BATCH_MAX, Claim};
pub(crate) use explain::Wait;
pub use limit_counts::LimitCounts;
pub use load::TenantLoad;
pub use messages::{Ended, ReadyRun, ReadyTask, Snapshot, SnapshotAttempt, Update, Withdrawn};

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Weak;
use std::time::Duration;

use servo_model::{AdmissionShard, AttemptId, Epoch, RunId, TenantId, TenantScope, Timestamp};

use crate::core::demand::{AdmissionPlan, PlanRef};
use crate::core::fairness::MeanDuration;
use crate::core::limits::{Limits, Pause, Pauses};
use crate::core::live::{LiveAttempt, Phase};
use crate::core::streams::Streams;
use crate::core::tenant::Tenant;
use crate::core::workers::{Worker, WorkerKey, Workers};

/// An action that the engine must carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Build the envelope of this accepted attempt and send it to its worker.
    Deliver {
        worker: WorkerKey,
        attempt: AttemptId,
    },
    /// Ask the worker to stop this attempt.
    Cancel {
        worker: WorkerKey,
        attempt: AttemptId,
    },
    /// Load this plan and pass it to [`Admission::plan_loaded`].
    LoadPlan(PlanRef),
}

#[derive(Debug, Default)]
pub struct Admission {
    /// Admission shards held, with their epochs.
    pub(super) held: BTreeMap<AdmissionShard, Epoch>,
    /// Held shards that are about to be released. No more tasks of their tenants are chosen.
    pub(super) leaving: BTreeSet<AdmissionShard>,
    pub(super) tenants: BTreeMap<TenantId, Tenant>,
    pub(super) live: HashMap<AttemptId, LiveAttempt>,
    pub(super) workers: Workers,
    pub(super) limits: Limits,
    pub(super) pauses: Pauses,
    pub(super) streams: Streams,
    pub(super) mean: MeanDuration,
    /// Tenants for whom something changed since the last pass found nothing more to admit.
    pub(super) dirty: BTreeSet<TenantId>,
    pub(super) plans: HashMap<PlanRef, Weak<AdmissionPlan>>,
    /// Number of plans in use when unused ones were last removed.
    pub(super) plans_in_use: usize,
    pub(super) awaiting_plan: HashMap<PlanRef, AwaitingPlan>,
    pub(super) effects: Vec<Effect>,
}

/// Runs and live attempts that wait for a plan to be loaded.
#[derive(Debug, Default)]
pub(super) struct AwaitingPlan {
    pub(super) runs: BTreeSet<RunId>,
    pub(super) attempts: BTreeSet<AttemptId>,
}

impl Default for MeanDuration {
    fn default() -> MeanDuration {
        MeanDuration::unknown()
    }
}

impl Admission {
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Sets the admission shards that this instance holds. A shard with a new epoch starts empty,
    /// because another instance may have admitted its tenants in between.
    pub fn set_held(&mut self, held: BTreeMap<AdmissionShard, Epoch>) {
        let lost: Vec<AdmissionShard> = (self.held.iter())
            .filter(|(shard, epoch)| held.get(shard) != Some(epoch))
            .map(|(shard, _)| *shard)
            .collect();
        lost.into_iter().for_each(|shard| self.drop_shard(shard));
        self.leaving.retain(|shard| held.contains_key(shard));
        self.held = held;
    }

    /// Stops choosing tasks for these shards, see [`Admission::is_handed_over`].
    pub fn begin_handover(&mut self, shards: impl IntoIterator<Item = AdmissionShard>) {
        self.leaving.extend(shards);
    }

    /// Returns whether every claim of a leaving shard is done: it was answered, or its stream broke
    /// before the answer, and its envelope was sent or waits for a disconnected worker.
    /// `is_pending` says which envelopes wait for their plan or their inputs.
    pub fn is_handed_over(&self, is_pending: impl Fn(AttemptId) -> bool) -> bool {
        let leaving = |live: &&LiveAttempt| self.leaving.contains(&live.tenant.admission_shard());
        let is_unfinished = |live: &LiveAttempt| match live.phase {
            Phase::Claiming(_) => true,
            Phase::Unsure | Phase::Accepted => false,
            Phase::Delivering => is_pending(live.attempt_id),
        };
        !self.live.values().filter(leaving).any(is_unfinished)
    }

    pub fn holds(&self, tenant: &TenantId) -> bool {
        self.held.contains_key(&tenant.admission_shard())
    }

    fn drop_shard(&mut self, shard: AdmissionShard) {
        self.streams.forget(shard);
        let tenants: Vec<_> = (self.tenants.iter())
            .filter(|(_, tenant)| tenant.admission_shard == shard)
            .map(|(id, _)| id.clone())
            .collect();
        for id in tenants {
            let lost: Vec<_> = self.live_of(&id).cloned().collect();
            for live in lost {
                self.live.remove(&live.attempt_id);
                self.return_credit(&live);
            }
            self.tenants.remove(&id);
            self.dirty.remove(&id);
        }
    }

    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.mark_all_dirty();
    }

    pub fn set_pauses(&mut self, pauses: impl IntoIterator<Item = Pause>) {
        self.pauses = Pauses::new(pauses);
        self.mark_all_dirty();
    }

    /// Adds or updates a worker that is pushed to, and delivers its attempts that the queue was not
    /// given yet.
    pub fn refresh_push_worker(&mut self, mut worker: Worker) {
        let key = worker.key();
        let has = self.attempts_of(&key).count();
        worker.credits = worker
            .slots
            .saturating_sub(u32::try_from(has).unwrap_or(u32::MAX));
        self.workers.join(worker);
        let waiting = self
            .attempts_of(&key)
            .filter(|live| live.phase == Phase::Accepted);
        let mut waiting: Vec<_> = waiting
            .filter(|live| live.details.is_some() && !live.cancelling)
            .map(|live| live.attempt_id)
            .collect();
        waiting.sort_unstable();
        waiting
            .into_iter()
            .for_each(|attempt| self.order_delivery(attempt));
        self.mark_dirty(&key.tenant);
    }

    /// Adds a worker that connected. Attempts on their way to it use up some of the credits it
    /// grants.
    pub fn connect_worker(&mut self, mut worker: Worker) {
        let key = worker.key();
        let coming = self.attempts_of(&key).filter(|live| live.has_credit());
        worker.credits = worker
            .credits
            .saturating_sub(u32::try_from(coming.count()).unwrap_or(u32::MAX));
        self.workers.join(worker);
        self.mark_dirty(&key.tenant);
    }

    /// Removes a worker whose stream ended. Its attempts stay assigned to it.
    pub fn disconnect_worker(&mut self, worker: &WorkerKey) {
        self.workers.leave(worker);
    }

    /// Gives the worker no new attempts.
    pub fn drain_worker(&mut self, worker: &WorkerKey) {
        self.workers.drain(worker);
    }

    pub fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter()
    }

    pub fn add_credits(&mut self, worker: &WorkerKey, more: u32) {
        self.workers.add_credits(worker, more);
        if self.workers.get(worker).is_some() {
            self.mark_dirty(&worker.tenant);
        }
    }

    /// Compares the attempts that a connecting worker reports with those it should have. A missing
    /// one is sent again, unless it was sent to another session of this worker, which may have
    /// started it. A reported one that is being cancelled is cancelled again, because the worker
    /// may have missed the first request. An unknown attempt is cancelled once all live attempts of
    /// the worker's tenant are known; never for a shared worker, whose tenant is not known.
    pub fn reconcile_worker(&mut self, worker: &WorkerKey, has: &BTreeSet<AttemptId>) {
        let Some(session) = self
            .workers
            .get(worker)
            .map(|worker| worker.session.clone())
        else {
            return;
        };
        let expected = self.attempts_of(worker);
        let mut missing: Vec<_> = expected
            .filter(|live| {
                !has.contains(&live.attempt_id) && !live.cancelling && live.details.is_some()
            })
            .filter(|live| match live.phase {
                Phase::Accepted => true,
                Phase::Delivering => live.sent_to.as_ref() == Some(&session),
                Phase::Claiming(_) | Phase::Unsure => false,
            })
            .map(|live| live.attempt_id)
            .collect();
        missing.sort_unstable();
        for attempt in missing {
            if self
                .live
                .get(&attempt)
                .is_some_and(|live| live.phase == Phase::Delivering)
            {
                self.workers.spend_credit(worker);
            }
            self.order_delivery(attempt);
        }
        let all_attempts_known = worker
            .tenant
            .tenant()
            .is_some_and(|tenant| self.streams.is_complete(tenant.admission_shard()));
        for &attempt in has {
            let is_stale = match self.live.get(&attempt) {
                Some(live) => live.cancelling && live.belongs_to(worker),
                None => all_attempts_known,
            };
            if is_stale {
                self.effects.push(Effect::Cancel {
                    worker: worker.clone(),
                    attempt,
                });
            }
        }
    }

    pub fn live_of<'a>(&'a self, tenant: &'a TenantId) -> impl Iterator<Item = &'a LiveAttempt> {
        self.live
            .values()
            .filter(move |live| live.tenant == *tenant)
    }

    pub fn attempts_of<'a>(
        &'a self,
        worker: &'a WorkerKey,
    ) -> impl Iterator<Item = &'a LiveAttempt> {
        self.live
            .values()
            .filter(move |live| live.belongs_to(worker))
    }

    pub fn live(&self, attempt: AttemptId) -> Option<&LiveAttempt> {
        self.live.get(&attempt)
    }

    /// Returns the number of live attempts of each connected worker.
    pub fn active_attempts(&self) -> HashMap<WorkerKey, u32> {
        let mut active = HashMap::new();
        for worker in self.live.values().filter_map(|live| self.worker_of(live)) {
            *active.entry(worker.key()).or_default() += 1;
        }
        active
    }

    /// Returns the connected worker that an attempt was given to.
    pub(super) fn worker_of(&self, live: &LiveAttempt) -> Option<&Worker> {
        self.workers.named(&live.tenant, live.worker?)
    }
}

// Shared helpers.
impl Admission {
    pub(super) fn add_live(&mut self, mut live: LiveAttempt) {
        let tenant = self
            .tenants
            .entry(live.tenant.clone())
            .or_insert_with(|| Tenant::new(&live.tenant));
        tenant.attempt_started(&mut live);
        self.live.insert(live.attempt_id, live);
    }

    /// Orders the delivery of an attempt if its worker is connected. Otherwise the attempt waits
    /// for the worker or for its start deadline.
    pub(super) fn order_delivery(&mut self, attempt: AttemptId) {
        let Some(worker) = self
            .live
            .get(&attempt)
            .and_then(|live| self.worker_of(live))
        else {
            return;
        };
        let (worker, session) = (worker.key(), worker.session.clone());
        if let Some(live) = self.live.get_mut(&attempt) {
            live.phase = Phase::Delivering;
            live.sent_to = Some(session);
            self.effects.push(Effect::Deliver { worker, attempt });
        }
    }

    /// Marks the attempt undelivered because its envelope was not sent. If it is being cancelled,
    /// the worker's credit is returned.
    pub(crate) fn envelope_not_sent(&mut self, attempt: AttemptId) {
        let Some(live) = self.live.get_mut(&attempt) else {
            return;
        };
        live.phase = Phase::Accepted;
        if live.cancelling {
            self.withhold(attempt);
        }
    }

    /// Makes sure that the attempt is never sent. A worker that is pushed to keeps the slot until
    /// the attempt has ended.
    pub(super) fn withhold(&mut self, attempt: AttemptId) {
        let Some(live) = self.live.get_mut(&attempt) else {
            return;
        };
        let never_sent = live.clone();
        live.details = None;
        if !never_sent.pushed {
            self.return_credit(&never_sent);
        }
    }

    /// Removes an attempt, frees its slot and returns the credit if its envelope was never sent.
    pub(super) fn end_attempt(
        &mut self,
        attempt: AttemptId,
        held: Option<Duration>,
        now: Timestamp,
    ) {
        let Some(live) = self.live.remove(&attempt) else {
            return;
        };
        let held = held.unwrap_or_else(|| now.since(live.since));
        if let Some(tenant) = self.tenants.get_mut(&live.tenant) {
            tenant.attempt_ended(&live, held, now);
        }
        self.return_credit(&live);
        self.dirty.insert(live.tenant);
    }

    /// Returns the credit of an attempt. A worker that pulls grants the credits of envelopes it
    /// received itself; a worker that is pushed to grants none.
    pub(super) fn return_credit(&mut self, live: &LiveAttempt) {
        let owed = live.has_credit() || live.pushed;
        if let Some(worker) = self.worker_of(live).filter(|_| owed).map(Worker::key) {
            self.add_credits(&worker, 1);
        }
    }

    /// Marks a tenant, or all of them, to be considered by the next pass of [`Admission::choose`].
    pub(super) fn mark_dirty(&mut self, scope: &TenantScope) {
        match scope {
            TenantScope::One(tenant) => {
                self.dirty.insert(tenant.clone());
            }
            TenantScope::All => self.mark_all_dirty(),
        }
    }

    pub(super) fn mark_all_dirty(&mut self) {
        let waiting = self
            .tenants
            .iter()
            .filter(|(_, tenant)| tenant.ready_queues.len() > 0);
        self.dirty.extend(waiting.map(|(id, _)| id.clone()));
    }
}
