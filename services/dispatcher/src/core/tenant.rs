//! One tenant: its runs with ready tasks, and what of its limits is used.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use servo_model::{AttemptId, RunId, TenantId};

use super::Seconds;
use super::demand::{PlanRef, Shape, Task};
use super::fairness::{Share, Usage};
use super::lanes::{LaneKey, Lanes, Ready};
use super::live::{Live, Pool};
use super::offers::OfferedRun;

#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) admission_shard: i16,
    pub(crate) runs: HashMap<RunId, Run>,
    pub(crate) lanes: Lanes,
    pub(crate) usage: Usage,
    pub(crate) live: u32,
    pub(crate) live_backfill: u32,
    pub(crate) live_pushed: u32,
    /// Who holds slots of which pool.
    pub(crate) pools: BTreeMap<Arc<str>, BTreeSet<AttemptId>>,
    /// Live attempts whose pool is not known yet.
    pub(crate) unplaced: u32,
}

/// A run that has something ready or live.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) plan: PlanRef,
    /// `None` until the plan was read.
    pub(crate) shape: Option<Arc<Shape>>,
    pub(crate) backfill: bool,
    pub(crate) trace: Arc<(String, String)>,
    /// Worker-seconds it had. Unlike a tenant's they do not decay and live attempts count their mean only: that keeps
    /// the order between runs while nothing happens, so that none of them need be looked at.
    pub(crate) share: Share,
    pub(crate) lanes: BTreeSet<LaneKey>,
    /// Tasks that cannot be placed before the plan was read.
    pub(crate) unread: BTreeMap<Task, Ready>,
    pub(crate) ready: usize,
    pub(crate) live: u32,
}

impl Tenant {
    pub(crate) fn new(id: &TenantId) -> Tenant {
        Tenant {
            admission_shard: id.admission_shard(),
            runs: HashMap::new(),
            lanes: Lanes::default(),
            usage: Usage::default(),
            live: 0,
            live_backfill: 0,
            live_pushed: 0,
            pools: BTreeMap::new(),
            unplaced: 0,
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.live > 0 || self.lanes.len() > 0
    }

    /// Slots of a pool that are taken, or may be.
    pub(crate) fn pool_used(&self, pool: &Arc<str>) -> u32 {
        let held = self.pools.get(pool).map_or(0, BTreeSet::len);
        u32::try_from(held)
            .unwrap_or(u32::MAX)
            .saturating_add(self.unplaced)
    }

    /// The run as it was offered, new or known. A known one keeps its share.
    pub(crate) fn offered(&mut self, offer: &OfferedRun, shape: Option<Arc<Shape>>) -> &mut Run {
        let run = self.runs.entry(offer.run).or_insert_with(|| Run {
            plan: offer.plan.clone(),
            shape: None,
            backfill: offer.backfill,
            trace: Arc::new(offer.trace.clone()),
            share: Share(0.0),
            lanes: BTreeSet::new(),
            unread: BTreeMap::new(),
            ready: 0,
            live: 0,
        });
        run.shape = run.shape.take().or(shape);
        run
    }

    /// Puts a ready task of a known run in its lane, or aside while the plan is not read.
    pub(crate) fn place(&mut self, id: RunId, task: Task, ready: Ready) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let Some(shape) = &run.shape else {
            run.unread.insert(task, ready);
            return;
        };
        let Some((_, demand, priority)) = shape.asset_of(task) else {
            return;
        };
        if run.ready == 0 {
            // A run that was away starts where the others are.
            run.share = run.share.max(self.lanes.least_share().unwrap_or(run.share));
        }
        let key = LaneKey {
            // The plan has added the run's to the asset's.
            priority: Reverse(priority),
            backfill: run.backfill,
            demand: demand.clone(),
        };
        let before = self.lanes.len();
        self.lanes.insert(&key, id, run.share, task, ready);
        run.ready += self.lanes.len() - before;
        run.lanes.insert(key);
    }

    /// The plan of a run is known now.
    pub(crate) fn shaped(&mut self, id: RunId, shape: &Arc<Shape>) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        run.shape = Some(shape.clone());
        for (task, ready) in std::mem::take(&mut run.unread) {
            self.place(id, task, ready);
        }
    }

    /// Takes a task out of its lane. `None` when it is not ready.
    pub(crate) fn take(&mut self, id: RunId, task: Task) -> Option<Ready> {
        let run = self.runs.get_mut(&id)?;
        if let Some(ready) = run.unread.remove(&task) {
            return Some(ready);
        }
        let key = run
            .lanes
            .iter()
            .find(|key| self.lanes.get(key).is_some_and(|lane| lane.holds(id, task)))?;
        let key = key.clone();
        let ready = self.lanes.remove(&key, id, run.share, task)?;
        run.ready -= 1;
        if self
            .lanes
            .get(&key)
            .is_none_or(|lane| lane.first_of(id).is_none())
        {
            run.lanes.remove(&key);
        }
        Some(ready)
    }

    /// Forgets everything that a run has ready.
    pub(crate) fn take_all(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        run.unread.clear();
        for key in std::mem::take(&mut run.lanes) {
            run.ready -= self.lanes.remove_run(&key, id, run.share);
        }
        self.forget_run_if_done(id);
    }

    pub(crate) fn began(&mut self, live: &Live) {
        self.live += 1;
        self.live_backfill += u32::from(live.backfill);
        self.live_pushed += u32::from(live.pushed);
        self.usage.began(live.since);
        self.hold(live);
        self.charge(live.run, live.charged);
        if let Some(run) = self.runs.get_mut(&live.run) {
            run.live += 1;
        }
    }

    pub(crate) fn ended(&mut self, live: &Live, held: Seconds, now: Seconds) {
        self.live -= 1;
        self.live_backfill -= u32::from(live.backfill);
        self.live_pushed -= u32::from(live.pushed);
        self.usage.ended(live.since, held, now);
        match &live.pool {
            Pool::Unknown => self.unplaced -= 1,
            Pool::None => {}
            Pool::Named(pool) => self.release(pool, live.attempt_id),
        }
        self.charge(live.run, held - live.charged);
        if let Some(run) = self.runs.get_mut(&live.run) {
            // An attempt that is older than what we know of its run was never counted here.
            run.live = run.live.saturating_sub(1);
        }
        self.forget_run_if_done(live.run);
    }

    /// The pool of a live attempt is known now.
    pub(crate) fn placed(&mut self, live: &Live) {
        self.unplaced -= 1;
        self.hold(live);
    }

    fn hold(&mut self, live: &Live) {
        match &live.pool {
            Pool::Unknown => self.unplaced += 1,
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

    fn charge(&mut self, id: RunId, seconds: Seconds) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let old = run.share;
        run.share = Share(old.0 + seconds);
        for key in &run.lanes {
            self.lanes.reorder(key, id, old, run.share);
        }
    }

    fn forget_run_if_done(&mut self, id: RunId) {
        if self
            .runs
            .get(&id)
            .is_some_and(|run| run.ready == 0 && run.live == 0 && run.unread.is_empty())
        {
            self.runs.remove(&id);
        }
    }
}
