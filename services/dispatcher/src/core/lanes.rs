//! Ready tasks of one tenant, in lanes: what shares priority, class and demand is blocked or free together, so that
//! a blocked lane costs one look however many tasks wait in it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_model::RunId;

use super::Seconds;
use super::demand::{Demand, Task};
use super::fairness::Share;

/// Sorted as lanes are served: by priority, the higher one first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneKey {
    pub(crate) priority: Reverse<i32>,
    pub(crate) backfill: bool,
    pub(crate) demand: Arc<Demand>,
}

/// A task that may be admitted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ready {
    pub(crate) attempt: u32,
    pub(crate) failures: u32,
    pub(crate) since: Seconds,
    /// The item of a mapped child as JSON text; empty for others.
    pub(crate) item_json: Arc<str>,
}

#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// Who had least first.
    order: BTreeSet<(Share, RunId)>,
    tasks: BTreeMap<RunId, BTreeMap<Task, Ready>>,
}

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: BTreeMap<LaneKey, Lane>,
    ready: usize,
}

impl Lanes {
    pub(crate) fn len(&self) -> usize {
        self.ready
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&LaneKey, &Lane)> {
        self.lanes.iter()
    }

    pub(crate) fn get(&self, key: &LaneKey) -> Option<&Lane> {
        self.lanes.get(key)
    }

    /// The share of the run that had least of those that wait.
    pub(crate) fn least_share(&self) -> Option<Share> {
        self.lanes
            .values()
            .filter_map(|lane| lane.first().map(|(share, _)| share))
            .min()
    }

    pub(crate) fn insert(
        &mut self,
        key: &LaneKey,
        run: RunId,
        share: Share,
        task: Task,
        ready: Ready,
    ) {
        if !self.lanes.contains_key(key) {
            self.lanes.insert(key.clone(), Lane::default());
        }
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        lane.order.insert((share, run));
        if lane
            .tasks
            .entry(run)
            .or_default()
            .insert(task, ready)
            .is_none()
        {
            self.ready += 1;
        }
    }

    pub(crate) fn remove(
        &mut self,
        key: &LaneKey,
        run: RunId,
        share: Share,
        task: Task,
    ) -> Option<Ready> {
        let lane = self.lanes.get_mut(key)?;
        let tasks = lane.tasks.get_mut(&run)?;
        let ready = tasks.remove(&task)?;
        self.ready -= 1;
        if tasks.is_empty() {
            lane.tasks.remove(&run);
            lane.order.remove(&(share, run));
        }
        if lane.tasks.is_empty() {
            self.lanes.remove(key);
        }
        Some(ready)
    }

    /// Takes out all tasks of a run in this lane and says how many they were.
    pub(crate) fn remove_run(&mut self, key: &LaneKey, run: RunId, share: Share) -> usize {
        let Some(lane) = self.lanes.get_mut(key) else {
            return 0;
        };
        let removed = lane.tasks.remove(&run).map_or(0, |tasks| tasks.len());
        lane.order.remove(&(share, run));
        if lane.tasks.is_empty() {
            self.lanes.remove(key);
        }
        self.ready -= removed;
        removed
    }

    /// Puts a run in its new place after its share changed.
    pub(crate) fn reorder(&mut self, key: &LaneKey, run: RunId, old: Share, new: Share) {
        if let Some(lane) = self.lanes.get_mut(key)
            && lane.order.remove(&(old, run))
        {
            lane.order.insert((new, run));
        }
    }
}

impl Lane {
    /// The run that is next, with its share.
    pub(crate) fn first(&self) -> Option<(Share, RunId)> {
        self.order.first().copied()
    }

    /// The task of this run that is next.
    pub(crate) fn first_of(&self, run: RunId) -> Option<Task> {
        self.tasks
            .get(&run)?
            .first_key_value()
            .map(|(task, _)| *task)
    }

    pub(crate) fn holds(&self, run: RunId, task: Task) -> bool {
        self.tasks
            .get(&run)
            .is_some_and(|tasks| tasks.contains_key(&task))
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.values().map(BTreeMap::len).sum()
    }

    /// How many tasks of this lane are before the given one, were nothing to end meanwhile.
    pub(crate) fn before(&self, run: RunId, share: Share, task: Task) -> usize {
        let earlier = self
            .order
            .range(..(share, run))
            .filter_map(|(_, other)| self.tasks.get(other));
        let own = self
            .tasks
            .get(&run)
            .map_or(0, |tasks| tasks.range(..task).count());
        own + earlier.map(BTreeMap::len).sum::<usize>()
    }
}
