//! All that is ready, live and able to work, for the tenants of the admission shards held here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Weak;

use servo_model::{AttemptId, RunId, TenantId};

use super::Seconds;
use super::demand::{PlanRef, Shape};
use super::fairness::MeanTask;
use super::limits::{Limits, Pause, Pauses};
use super::live::{Live, Phase};
use super::streams::Streams;
use super::tenant::Tenant;
use super::workers::{Worker, WorkerKey, Workers};

/// What the world is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Make the envelope of this accepted attempt and send it to its worker.
    Deliver {
        worker: WorkerKey,
        attempt: AttemptId,
    },
    /// Tell the worker to stop this attempt.
    Cancel {
        worker: WorkerKey,
        attempt: AttemptId,
    },
    /// Read this plan and tell its shape.
    Read(PlanRef),
}

#[derive(Debug, Default)]
pub struct Admission {
    /// Admission shards held, with their epochs.
    pub(super) held: BTreeMap<i16, u64>,
    /// Those of them that are about to be given away: nothing more is chosen for their tenants.
    pub(super) leaving: BTreeSet<i16>,
    pub(super) tenants: BTreeMap<TenantId, Tenant>,
    pub(super) live: HashMap<AttemptId, Live>,
    pub(super) workers: Workers,
    pub(super) limits: Limits,
    pub(super) pauses: Pauses,
    pub(super) streams: Streams,
    pub(super) mean: MeanTask,
    /// Tenants for whom something changed since the last choice found nothing more.
    pub(super) stirred: BTreeSet<TenantId>,
    pub(super) shapes: HashMap<PlanRef, Weak<Shape>>,
    /// How many were in use when they were last looked through.
    pub(super) shapes_used: usize,
    pub(super) unread: HashMap<PlanRef, Unread>,
    pub(super) effects: Vec<Effect>,
}

/// What waits for a plan to be read.
#[derive(Debug, Default)]
pub(super) struct Unread {
    pub(super) runs: BTreeSet<RunId>,
    pub(super) attempts: BTreeSet<AttemptId>,
}

impl Default for MeanTask {
    fn default() -> MeanTask {
        MeanTask::unknown()
    }
}

impl Admission {
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// From now on this instance admits for these admission shards, and for no others. A new epoch begins anew.
    pub fn hold(&mut self, held: BTreeMap<i16, u64>) {
        let lost: Vec<i16> = (self.held.iter())
            .filter(|(shard, epoch)| held.get(shard) != Some(epoch))
            .map(|(shard, _)| *shard)
            .collect();
        lost.into_iter().for_each(|shard| self.lose(shard));
        self.leaving.retain(|shard| held.contains_key(shard));
        self.held = held;
    }

    /// From now on only what is under way is finished for these shards, see [`Admission::is_settled`].
    pub fn leave_shards(&mut self, shards: impl IntoIterator<Item = i16>) {
        self.leaving.extend(shards);
    }

    /// Whether no claim of a shard that is left waits for its answer: what was claimed then is with its worker, or waits for
    /// a worker that is away. `is_pending` knows what is answered and still being made ready to be sent.
    pub fn is_settled(&self, is_pending: impl Fn(AttemptId) -> bool) -> bool {
        let leaving = |live: &&Live| self.leaving.contains(&live.tenant.admission_shard());
        let under_way = |live: &Live| match live.phase {
            Phase::Claiming(_) => true,
            Phase::Unsure | Phase::Accepted => false,
            Phase::Sent => is_pending(live.attempt_id),
        };
        !self.live.values().filter(leaving).any(under_way)
    }

    pub fn holds(&self, tenant: &TenantId) -> bool {
        self.held.contains_key(&tenant.admission_shard())
    }

    fn lose(&mut self, shard: i16) {
        self.streams.forget(shard);
        let tenants: Vec<_> = (self.tenants.iter())
            .filter(|(_, tenant)| tenant.admission_shard == shard)
            .map(|(id, _)| id.clone())
            .collect();
        for id in tenants {
            let lost: Vec<_> = self.live_of(&id).cloned().collect();
            for live in lost {
                self.live.remove(&live.attempt_id);
                self.give_back(&live);
            }
            self.tenants.remove(&id);
            self.stirred.remove(&id);
        }
    }

    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
        self.stir_all();
    }

    pub fn pause(&mut self, pauses: impl IntoIterator<Item = Pause>) {
        self.pauses = Pauses::new(pauses);
        self.stir_all();
    }

    /// A worker that is pushed to is there, or still is. What it should have and the queue was not given is sent now.
    pub fn reach(&mut self, mut worker: Worker) {
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
            .filter(|live| live.order.is_some() && !live.cancelling)
            .map(|live| live.attempt_id)
            .collect();
        waiting.sort_unstable();
        waiting
            .into_iter()
            .for_each(|attempt| self.deliver(attempt));
        self.stir(key.tenant.as_ref());
    }

    /// A worker connected. What is on its way to it has taken some of the credits it grants.
    pub fn join(&mut self, mut worker: Worker) {
        let key = worker.key();
        let coming = self.attempts_of(&key).filter(|live| live.has_credit());
        worker.credits = worker
            .credits
            .saturating_sub(u32::try_from(coming.count()).unwrap_or(u32::MAX));
        self.workers.join(worker);
        self.stir(key.tenant.as_ref());
    }

    /// A worker's stream is gone. What it has stays its own.
    pub fn leave(&mut self, worker: &WorkerKey) {
        self.workers.leave(worker);
    }

    /// A worker takes nothing new.
    pub fn drain(&mut self, worker: &WorkerKey) {
        self.workers.drain(worker);
    }

    pub fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter()
    }

    pub fn add_credits(&mut self, worker: &WorkerKey, more: u32) {
        self.workers.add_credits(worker, more);
        if self.workers.get(worker).is_some() {
            self.stir(worker.tenant.as_ref());
        }
    }

    /// A worker that connects says what it has. What it should have and does not is sent again, unless it was sent to
    /// another process of this worker; what it should not have is to be stopped.
    pub fn compare(&mut self, worker: &WorkerKey, has: &BTreeSet<AttemptId>) {
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
                !has.contains(&live.attempt_id) && !live.cancelling && live.order.is_some()
            })
            .filter(|live| match live.phase {
                Phase::Accepted => true,
                Phase::Sent => live.sent_to.as_ref() == Some(&session),
                Phase::Claiming(_) | Phase::Unsure => false,
            })
            .map(|live| live.attempt_id)
            .collect();
        missing.sort_unstable();
        for attempt in missing {
            if self
                .live
                .get(&attempt)
                .is_some_and(|live| live.phase == Phase::Sent)
            {
                self.workers.spend_credit(worker);
            }
            self.deliver(attempt);
        }
        // Only where all is known an unknown attempt is a lost one.
        let all_told = worker
            .tenant
            .as_ref()
            .is_some_and(|tenant| self.streams.all_told(tenant.admission_shard()));
        for &attempt in has.iter().filter(|_| all_told) {
            if self
                .live
                .get(&attempt)
                .is_none_or(|live| live.cancelling && live.may_be_with(worker))
            {
                self.effects.push(Effect::Cancel {
                    worker: worker.clone(),
                    attempt,
                });
            }
        }
    }

    /// Live attempts of a tenant.
    pub fn live_of<'a>(&'a self, tenant: &'a TenantId) -> impl Iterator<Item = &'a Live> {
        self.live
            .values()
            .filter(move |live| live.tenant == *tenant)
    }

    /// Live attempts of a worker.
    pub fn attempts_of<'a>(&'a self, worker: &'a WorkerKey) -> impl Iterator<Item = &'a Live> {
        self.live
            .values()
            .filter(move |live| live.may_be_with(worker))
    }

    pub fn live(&self, attempt: AttemptId) -> Option<&Live> {
        self.live.get(&attempt)
    }

    /// How many attempts each worker has that is there.
    pub fn active_attempts(&self) -> HashMap<WorkerKey, u32> {
        let mut active = HashMap::new();
        for worker in self.live.values().filter_map(|live| self.worker_of(live)) {
            *active.entry(worker.key()).or_default() += 1;
        }
        active
    }

    /// The worker that has an attempt or shall have it, while it is there.
    pub(super) fn worker_of(&self, live: &Live) -> Option<&Worker> {
        self.workers.named(&live.tenant, live.worker?)
    }
}

// Steps that several of the above and of what schedulers tell share.
impl Admission {
    pub(super) fn begin(&mut self, live: Live) {
        let tenant = self
            .tenants
            .entry(live.tenant.clone())
            .or_insert_with(|| Tenant::new(&live.tenant));
        tenant.began(&live);
        self.live.insert(live.attempt_id, live);
    }

    /// Sends an attempt to its worker, if that is connected; else it waits for the worker or for its deadline.
    pub(super) fn deliver(&mut self, attempt: AttemptId) {
        let Some(worker) = self
            .live
            .get(&attempt)
            .and_then(|live| self.worker_of(live))
        else {
            return;
        };
        let (worker, session) = (worker.key(), worker.session.clone());
        if let Some(live) = self.live.get_mut(&attempt) {
            (live.phase, live.sent_to) = (Phase::Sent, Some(session));
            self.effects.push(Effect::Deliver { worker, attempt });
        }
    }

    /// It never left: its worker keeps the credit, from now on if nobody shall get it any more.
    pub(crate) fn not_sent(&mut self, attempt: AttemptId) {
        let Some(live) = self.live.get_mut(&attempt) else {
            return;
        };
        live.phase = Phase::Accepted;
        if live.cancelling {
            self.never_send(attempt);
        }
    }

    /// Nobody shall get it any more. Who is pushed to keeps its slot until the attempt ended.
    pub(super) fn never_send(&mut self, attempt: AttemptId) {
        let Some(live) = self.live.get_mut(&attempt) else {
            return;
        };
        let never_sent = live.clone();
        live.order = None;
        if !never_sent.pushed {
            self.give_back(&never_sent);
        }
    }

    /// An attempt holds its slot no more. What was not handed over gives its worker the credit back.
    pub(super) fn end(&mut self, attempt: AttemptId, held: Option<Seconds>, now: Seconds) {
        let Some(live) = self.live.remove(&attempt) else {
            return;
        };
        let held = held.unwrap_or_else(|| (now - live.since).max(0.0));
        if let Some(tenant) = self.tenants.get_mut(&live.tenant) {
            tenant.ended(&live, held, now);
        }
        self.give_back(&live);
        self.stirred.insert(live.tenant);
    }

    /// Who pulls grants what it took anew; who is pushed to does not.
    pub(super) fn give_back(&mut self, live: &Live) {
        let owed = live.has_credit() || live.pushed;
        if let Some(worker) = self.worker_of(live).filter(|_| owed).map(Worker::key) {
            self.add_credits(&worker, 1);
        }
    }

    /// Something changed that may let a tenant's tasks through; `None` means everybody's.
    pub(super) fn stir(&mut self, tenant: Option<&TenantId>) {
        match tenant {
            Some(tenant) => {
                self.stirred.insert(tenant.clone());
            }
            None => self.stir_all(),
        }
    }

    pub(super) fn stir_all(&mut self) {
        let waiting = self
            .tenants
            .iter()
            .filter(|(_, tenant)| tenant.lanes.len() > 0);
        self.stirred.extend(waiting.map(|(id, _)| id.clone()));
    }
}
