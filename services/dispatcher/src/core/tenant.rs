//! One tenant: its runs with ready tasks and the slots it uses.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use servo_model::{AdmissionShard, AttemptId, RunId, TaskRef, TenantId, Timestamp};

use super::admission::ReadyRun;
use super::demand::{AdmissionPlan, PlanRef};
use super::fairness::{Share, Usage};
use super::live::{LiveAttempt, Pool};
use super::ready_queues::{QueueKey, ReadyEntry, ReadyQueues};

#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) admission_shard: AdmissionShard,
    pub(crate) runs: HashMap<RunId, Run>,
    pub(crate) ready_queues: ReadyQueues,
    pub(crate) usage: Usage,
    pub(crate) live: u32,
    pub(crate) live_backfill: u32,
    pub(crate) live_pushed: u32,
    /// The live attempts in each pool.
    pub(crate) pools: BTreeMap<Arc<str>, BTreeSet<AttemptId>>,
    /// Live attempts whose plan is not loaded yet.
    pub(crate) live_in_unknown_pool: u32,
}

/// A run that has ready tasks or live attempts.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) plan_ref: PlanRef,
    /// `None` until the plan is loaded.
    pub(crate) admission_plan: Option<Arc<AdmissionPlan>>,
    pub(crate) backfill: bool,
    pub(crate) trace: Arc<(String, String)>,
    /// Worker seconds that the run has used. Unlike a tenant's usage they do not decay, and a live
    /// attempt counts one mean task only. The order between runs therefore changes only with
    /// events, and waiting runs need not be sorted again as time passes.
    pub(crate) share: Share,
    pub(crate) queue_keys: BTreeSet<QueueKey>,
    /// Tasks that cannot be queued before the plan is loaded.
    pub(crate) awaiting_plan: BTreeMap<TaskRef, ReadyEntry>,
    pub(crate) ready: usize,
    pub(crate) live: u32,
}

impl Tenant {
    pub(crate) fn new(id: &TenantId) -> Tenant {
        Tenant {
            admission_shard: id.admission_shard(),
            runs: HashMap::new(),
            ready_queues: ReadyQueues::default(),
            usage: Usage::default(),
            live: 0,
            live_backfill: 0,
            live_pushed: 0,
            pools: BTreeMap::new(),
            live_in_unknown_pool: 0,
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.live > 0 || self.ready_queues.len() > 0
    }

    /// Returns the slots of a pool that are taken, counting attempts whose pool is unknown.
    pub(crate) fn pool_used(&self, pool: &Arc<str>) -> u32 {
        let held = self.pools.get(pool).map_or(0, BTreeSet::len);
        u32::try_from(held)
            .unwrap_or(u32::MAX)
            .saturating_add(self.live_in_unknown_pool)
    }

    /// Returns the run, which is created when it is new. A known run keeps its share.
    pub(crate) fn upsert_run(
        &mut self,
        ready_run: &ReadyRun,
        admission_plan: Option<Arc<AdmissionPlan>>,
    ) -> &mut Run {
        let run = self.runs.entry(ready_run.run).or_insert_with(|| Run {
            plan_ref: ready_run.plan.clone(),
            admission_plan: None,
            backfill: ready_run.backfill,
            trace: Arc::new(ready_run.trace.clone()),
            share: Share(0.0),
            queue_keys: BTreeSet::new(),
            awaiting_plan: BTreeMap::new(),
            ready: 0,
            live: 0,
        });
        run.admission_plan = run.admission_plan.take().or(admission_plan);
        run
    }

    /// Adds a ready task of a known run to its queue, or keeps it in `awaiting_plan` while the plan
    /// is not loaded.
    pub(crate) fn enqueue(&mut self, id: RunId, task: TaskRef, ready: ReadyEntry) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let Some(admission_plan) = &run.admission_plan else {
            run.awaiting_plan.insert(task, ready);
            return;
        };
        let Some((_, demand, priority)) = admission_plan.asset_of(task) else {
            return;
        };
        if run.ready == 0 {
            // A run that had nothing ready starts at the smallest share of the others.
            run.share = run
                .share
                .max(self.ready_queues.least_share().unwrap_or(run.share));
        }
        let key = QueueKey {
            // The planner has added the priority of the run to that of the asset.
            priority: Reverse(priority),
            backfill: run.backfill,
            demand: demand.clone(),
        };
        let before = self.ready_queues.len();
        self.ready_queues.insert(&key, id, run.share, task, ready);
        run.ready += self.ready_queues.len() - before;
        run.queue_keys.insert(key);
    }

    /// Queues the tasks that were waiting for the run's plan.
    pub(crate) fn plan_loaded(&mut self, id: RunId, admission_plan: &Arc<AdmissionPlan>) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        run.admission_plan = Some(admission_plan.clone());
        for (task, ready) in std::mem::take(&mut run.awaiting_plan) {
            self.enqueue(id, task, ready);
        }
    }

    /// Removes a task from its queue. Returns `None` when it is not ready.
    pub(crate) fn remove(&mut self, id: RunId, task: TaskRef) -> Option<ReadyEntry> {
        let run = self.runs.get_mut(&id)?;
        if let Some(ready) = run.awaiting_plan.remove(&task) {
            return Some(ready);
        }
        let key = run.queue_keys.iter().find(|key| {
            self.ready_queues
                .get(key)
                .is_some_and(|queue| queue.holds(id, task))
        })?;
        let key = key.clone();
        let ready = self.ready_queues.remove(&key, id, run.share, task)?;
        run.ready -= 1;
        if self
            .ready_queues
            .get(&key)
            .is_none_or(|queue| queue.first_of(id).is_none())
        {
            run.queue_keys.remove(&key);
        }
        Some(ready)
    }

    /// Removes all ready tasks of a run.
    pub(crate) fn remove_all(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        run.awaiting_plan.clear();
        for key in std::mem::take(&mut run.queue_keys) {
            run.ready -= self.ready_queues.remove_run(&key, id, run.share);
        }
        self.forget_run_if_done(id);
    }

    pub(crate) fn attempt_started(&mut self, live: &mut LiveAttempt) {
        self.live += 1;
        self.live_backfill += u32::from(live.backfill);
        self.live_pushed += u32::from(live.pushed);
        self.usage.attempt_started(live.since);
        self.hold(live);
        self.charge(live.run, live.charged_seconds);
        if let Some(run) = self.runs.get_mut(&live.run) {
            run.live += 1;
            live.counted_in_run = true;
        }
    }

    pub(crate) fn attempt_ended(&mut self, live: &LiveAttempt, held: Duration, now: Timestamp) {
        self.live -= 1;
        self.live_backfill -= u32::from(live.backfill);
        self.live_pushed -= u32::from(live.pushed);
        self.usage.attempt_ended(live.since, held, now);
        match &live.pool {
            Pool::Unknown => self.live_in_unknown_pool -= 1,
            Pool::None => {}
            Pool::Named(pool) => self.release(pool, live.attempt_id),
        }
        self.charge(live.run, held.as_secs_f64() - live.charged_seconds);
        if live.counted_in_run
            && let Some(run) = self.runs.get_mut(&live.run)
        {
            run.live -= 1;
        }
        self.forget_run_if_done(live.run);
    }

    /// Counts a live attempt in its pool once its plan is loaded.
    pub(crate) fn pool_known(&mut self, live: &LiveAttempt) {
        self.live_in_unknown_pool -= 1;
        self.hold(live);
    }

    fn hold(&mut self, live: &LiveAttempt) {
        match &live.pool {
            Pool::Unknown => self.live_in_unknown_pool += 1,
            Pool::None => {}
            Pool::Named(pool) => {
                self.pools
                    .entry(pool.clone())
                    .or_default()
                    .insert(live.attempt_id);
            }
        }
    }

    fn release(&mut self, pool: &Arc<str>, attempt: AttemptId) {
        if let Some(holders) = self.pools.get_mut(pool) {
            holders.remove(&attempt);
            if holders.is_empty() {
                self.pools.remove(pool);
            }
        }
    }

    fn charge(&mut self, id: RunId, seconds: f64) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let old = run.share;
        run.share = Share(old.0 + seconds);
        for key in &run.queue_keys {
            self.ready_queues.reorder(key, id, old, run.share);
        }
    }

    fn forget_run_if_done(&mut self, id: RunId) {
        if self
            .runs
            .get(&id)
            .is_some_and(|run| run.ready == 0 && run.live == 0 && run.awaiting_plan.is_empty())
        {
            self.runs.remove(&id);
        }
    }
}
