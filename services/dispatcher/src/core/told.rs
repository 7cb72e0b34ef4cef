//! What schedulers tell: snapshots, changes, and what came of claims.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use servo_model::{AttemptId, RunId, TaskKey, TenantId};

use super::Seconds;
use super::admission::{Admission, Effect, Unread};
use super::demand::{PlanRef, Shape, Task};
use super::lanes::Ready;
use super::live::{Live, Order, Phase, Pool};
use super::offers::{Ended, LiveTask, OfferedRun, Snapshot, Update, Withdrawn};
use super::streams::SourceId;
use super::tenant::Tenant;
use super::workers::{Worker, WorkerKey};

/// Fewer are not worth looking through.
const SHAPES_LOOKED_THROUGH_MIN: usize = 64;

impl Admission {
    /// A stream was opened for these admission shards.
    pub fn opened(&mut self, source: SourceId, shards: impl IntoIterator<Item = i16>) {
        self.streams.open(source, shards);
    }

    /// Whether a stream has claims without an answer.
    pub fn is_answered(&self, source: SourceId) -> bool {
        self.streams.unanswered(source) == 0
    }

    /// A stream ended. What was ready on its shards is forgotten; live attempts stay counted.
    pub fn closed(&mut self, source: SourceId) {
        let (silent, unanswered) = self.streams.close(source);
        for attempt in unanswered {
            if let Some(live) = self.live.get_mut(&attempt)
                && live.phase == Phase::Claiming(source)
            {
                live.phase = Phase::Unsure;
            }
        }
        silent
            .into_iter()
            .for_each(|shard| self.forget_ready(shard));
    }

    /// A stream is about to be closed: nothing more is claimed on it, what was claimed is still answered.
    pub fn retired(&mut self, source: SourceId) {
        let silent = self.streams.silence(source);
        silent
            .into_iter()
            .for_each(|shard| self.forget_ready(shard));
    }

    /// The instance behind a stream no longer holds a shard.
    pub fn gone(&mut self, source: SourceId, shard: i16) {
        if self.streams.source_of(shard) != Some(source) {
            return;
        }
        if let Some(told) = self.streams.shard(shard) {
            told.source = None;
        }
        self.forget_ready(shard);
    }

    /// Gathers the parts of a snapshot; with the last one it takes the place of what was known.
    pub fn snapshot(&mut self, source: SourceId, part: Snapshot, now: Seconds) {
        if !self.streams.is_open(source) {
            return;
        }
        let Some(told) = self.streams.shard(part.shard) else {
            return;
        };
        if part.epoch < told.epoch {
            return;
        }
        let gathered = match told.coming.take() {
            Some((from, mut whole)) if from == source && !part.first => {
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
            self.replace(source, gathered, now);
        } else {
            told.coming = Some((source, gathered));
        }
    }

    fn replace(&mut self, source: SourceId, whole: Snapshot, now: Seconds) {
        self.forget_ready(whole.shard);
        let told: BTreeSet<AttemptId> = whole.live.iter().map(|live| live.attempt_id).collect();
        let mut over: Vec<AttemptId> = (self.live.values())
            .filter(|live| live.run.shard() == whole.shard && !told.contains(&live.attempt_id))
            // What was claimed on this very stream is answered after the snapshot.
            .filter(|live| live.phase != Phase::Claiming(source))
            .map(|live| live.attempt_id)
            .collect();
        over.sort_unstable();
        over.into_iter()
            .for_each(|attempt| self.end(attempt, None, now));
        self.streams.completed(whole.shard, source, whole.epoch);
        whole
            .live
            .into_iter()
            .for_each(|live| self.told_live(source, live));
        whole.ready.into_iter().for_each(|run| self.offer(run, now));
        // Live attempts may be known completely only now.
        self.stir_all();
    }

    pub fn update(&mut self, source: SourceId, update: Update, now: Seconds) {
        if self.streams.source_of(update.shard) != Some(source) {
            return;
        }
        // Withdrawn first and ready before ended, so that a run that goes on is not forgotten in between.
        update
            .withdrawn
            .into_iter()
            .for_each(|withdrawn| self.withdraw(&withdrawn));
        update
            .ready
            .into_iter()
            .for_each(|run| self.offer(run, now));
        update
            .ended
            .into_iter()
            .for_each(|ended| self.ended(ended, now));
        update
            .cancelled
            .into_iter()
            .for_each(|attempt| self.cancel(attempt));
    }

    /// These claims were sent as one batch.
    pub fn sent(&mut self, source: SourceId, number: u64, claims: Vec<AttemptId>) {
        self.streams.sent(source, number, claims);
    }

    /// A batch was answered: what is not refused counts.
    pub fn results(
        &mut self,
        source: SourceId,
        number: u64,
        refused: &BTreeSet<u32>,
        now: Seconds,
    ) {
        for (index, attempt) in (0..).zip(self.streams.answered(source, number)) {
            if self
                .live
                .get(&attempt)
                .is_none_or(|live| live.phase != Phase::Claiming(source))
            {
                continue;
            }
            if refused.contains(&index) {
                self.end(attempt, Some(0.0), now);
            } else {
                self.accepted(attempt);
            }
        }
    }

    /// The shape of a plan that was to be read.
    pub fn read(&mut self, plan: &PlanRef, shape: &Arc<Shape>, now: Seconds) {
        self.forget_unused_shapes();
        self.shapes.insert(plan.clone(), Arc::downgrade(shape));
        let Some(waiting) = self.unread.remove(plan) else {
            return;
        };
        self.note_return(&plan.tenant, now);
        let Some(tenant) = self.tenants.get_mut(&plan.tenant) else {
            return;
        };
        for run in waiting.runs {
            tenant.shaped(run, shape);
        }
        for attempt in waiting.attempts {
            let Some(live) = self
                .live
                .get_mut(&attempt)
                .filter(|live| live.pool == Pool::Unknown)
            else {
                continue;
            };
            live.pool = pool_of(shape, live.task);
            tenant.placed(live);
        }
        self.stirred.insert(plan.tenant.clone());
    }

    /// The stream to the owner of a run.
    pub fn source_of(&self, run: RunId) -> Option<SourceId> {
        self.streams.source_of(run.shard())
    }

    /// The key of a task whose plan is in use.
    pub fn task_key(&self, plan: &PlanRef, task: Task) -> Option<TaskKey> {
        self.shapes.get(plan)?.upgrade()?.key(task)
    }
}

impl Admission {
    /// A plan that nobody runs any more leaves its name behind; once most are such they go.
    fn forget_unused_shapes(&mut self) {
        if self.shapes.len() > 2 * self.shapes_used.max(SHAPES_LOOKED_THROUGH_MIN) {
            self.shapes.retain(|_, shape| shape.strong_count() > 0);
            self.shapes_used = self.shapes.len();
        }
    }

    fn forget_ready(&mut self, shard: i16) {
        for tenant in self.tenants.values_mut() {
            let runs: Vec<RunId> = tenant
                .runs
                .keys()
                .filter(|run| run.shard() == shard)
                .copied()
                .collect();
            runs.into_iter().for_each(|run| tenant.take_all(run));
        }
    }

    fn offer(&mut self, offer: OfferedRun, now: Seconds) {
        let id = offer.plan.tenant.clone();
        if !self.holds(&id) || offer.tasks.is_empty() {
            return;
        }
        self.note_return(&id, now);
        let shape = self.shape(&offer.plan);
        let tenant = self
            .tenants
            .entry(id.clone())
            .or_insert_with(|| Tenant::new(&id));
        let run = tenant.offered(&offer, shape);
        if run.shape.is_none() {
            waiting_for(&offer.plan, &mut self.unread, &mut self.effects)
                .runs
                .insert(offer.run);
        }
        for task in offer.tasks {
            let ready = Ready {
                attempt: task.attempt,
                failures: task.failures,
                since: task.since,
                item_json: task.item_json.into(),
            };
            tenant.place(offer.run, task.task, ready);
        }
        self.stirred.insert(id);
    }

    /// A tenant that had nothing to do starts where the one stands that had least. What the others' live attempts are
    /// thought to take yet is not counted: it is given back when they end, several at once, and the newcomer would wait
    /// until it is spent again.
    fn note_return(&mut self, id: &TenantId, now: Seconds) {
        if self.tenants.get(id).is_some_and(Tenant::is_active) {
            return;
        }
        let active = self.tenants.iter().filter(|(_, tenant)| tenant.is_active());
        let least = active
            .map(|(id, tenant)| tenant.usage.had(now) / self.limits.of(id).weight())
            .min_by(f64::total_cmp);
        let weight = self.limits.of(id).weight();
        let tenant = self
            .tenants
            .entry(id.clone())
            .or_insert_with(|| Tenant::new(id));
        tenant
            .usage
            .return_at(least.unwrap_or_default() * weight, now);
    }

    fn withdraw(&mut self, withdrawn: &Withdrawn) {
        let Some(tenant) = self.tenants.get_mut(&withdrawn.tenant) else {
            return;
        };
        if withdrawn.tasks.is_empty() {
            tenant.take_all(withdrawn.run);
        }
        for task in &withdrawn.tasks {
            tenant.take(withdrawn.run, *task);
        }
    }

    /// A live attempt of a snapshot: claimed before us, or by us with the answer lost.
    fn told_live(&mut self, source: SourceId, told: LiveTask) {
        if !self.holds(&told.plan.tenant) {
            return;
        }
        if let Some(live) = self.live.get_mut(&told.attempt_id) {
            live.cancelling |= told.cancelling;
            let elsewhere = matches!(live.phase, Phase::Claiming(on) if on != source);
            if live.phase == Phase::Unsure || elsewhere {
                self.accepted(told.attempt_id);
            } else if live.phase == Phase::Sent && told.waiting.is_some() {
                // The queue may have it without its owner having heard of that: the same name again tells.
                self.deliver(told.attempt_id);
            }
            return;
        }
        let shape = self.shape(&told.plan);
        if shape.is_none() {
            let waiting = waiting_for(&told.plan, &mut self.unread, &mut self.effects);
            waiting.attempts.insert(told.attempt_id);
        }
        let order = told.waiting.map(|waiting| {
            Arc::new(Order {
                failures: waiting.failures,
                item_json: waiting.item_json.into(),
                trace: Arc::new(waiting.trace),
            })
        });
        let attempt = told.attempt_id;
        let live = Live {
            attempt_id: told.attempt_id,
            tenant: told.plan.tenant.clone(),
            run: told.run,
            task: told.task,
            attempt: told.attempt,
            worker: told.worker,
            since: told.since,
            backfill: told.backfill,
            cancelling: told.cancelling,
            pushed: told.pushed,
            pool: shape.map_or(Pool::Unknown, |shape| pool_of(&shape, told.task)),
            phase: if order.is_some() {
                Phase::Accepted
            } else {
                Phase::Sent
            },
            sent_to: None,
            order,
            charged: 0.0,
            plan: told.plan,
        };
        self.begin(live);
        self.deliver_if_waiting(attempt);
    }

    /// Claimed before us and never given to the queue, as far as is known.
    fn deliver_if_waiting(&mut self, attempt: AttemptId) {
        if self
            .live
            .get(&attempt)
            .is_some_and(|live| live.phase == Phase::Accepted && !live.cancelling)
        {
            self.deliver(attempt);
        }
    }

    fn accepted(&mut self, attempt: AttemptId) {
        let Some(live) = self.live.get_mut(&attempt) else {
            return;
        };
        live.phase = Phase::Accepted;
        if !live.cancelling {
            self.deliver(attempt);
        }
    }

    fn ended(&mut self, ended: Ended, now: Seconds) {
        self.mean.learn(ended.held);
        self.end(ended.attempt_id, Some(ended.held), now);
    }

    fn cancel(&mut self, attempt: AttemptId) {
        let Some(live) = self.live.get_mut(&attempt) else {
            return;
        };
        if std::mem::replace(&mut live.cancelling, true) {
            return;
        }
        let live = &*live;
        let Some(id) = live.worker.filter(|_| live.phase == Phase::Sent) else {
            return self.never_send(attempt);
        };
        let own = || WorkerKey {
            tenant: Some(live.tenant.clone()),
            id,
        };
        let worker = self
            .workers
            .named(&live.tenant, id)
            .map_or_else(own, Worker::key);
        self.effects.push(Effect::Cancel { worker, attempt });
    }

    fn shape(&mut self, plan: &PlanRef) -> Option<Arc<Shape>> {
        let shape = self.shapes.get(plan)?.upgrade();
        if shape.is_none() {
            self.shapes.remove(plan);
        }
        shape
    }
}

/// A task that the plan does not have takes no slot of any pool.
pub(super) fn pool_of(shape: &Shape, task: Task) -> Pool {
    let pool = shape
        .asset_of(task)
        .and_then(|(_, demand, _)| demand.pool.clone());
    pool.map_or(Pool::None, Pool::Named)
}

/// Who waits for this plan; the first one asks for it.
fn waiting_for<'a>(
    plan: &PlanRef,
    unread: &'a mut HashMap<PlanRef, Unread>,
    effects: &mut Vec<Effect>,
) -> &'a mut Unread {
    unread.entry(plan.clone()).or_insert_with(|| {
        effects.push(Effect::Read(plan.clone()));
        Unread::default()
    })
}
