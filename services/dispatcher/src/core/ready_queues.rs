//! Ready tasks of one tenant.
//!
//! Tasks with the same priority, class (backfill or not) and demand share a queue, because limits,
//! pauses and missing workers block all of them or none. A blocked queue therefore costs one check,
//! however many tasks are in it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_model::{RunId, TaskRef};

use super::demand::Demand;
use super::fairness::Share;

/// Sorted in the order in which queues are served: higher priority first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueKey {
    pub(crate) priority: Reverse<i32>,
    pub(crate) backfill: bool,
    pub(crate) demand: Arc<Demand>,
}

/// A ready task in its queue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadyEntry {
    pub(crate) attempt: u32,
    pub(crate) failures: u32,
    /// The item of a mapped task as JSON; empty for other tasks.
    pub(crate) item_json: Arc<str>,
}

#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    /// Runs by share, the smallest first.
    order: BTreeSet<(Share, RunId)>,
    tasks: BTreeMap<RunId, BTreeMap<TaskRef, ReadyEntry>>,
}

#[derive(Debug, Default)]
pub(crate) struct ReadyQueues {
    queues: BTreeMap<QueueKey, ReadyQueue>,
    ready: usize,
}

impl ReadyQueues {
    pub(crate) fn len(&self) -> usize {
        self.ready
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&QueueKey, &ReadyQueue)> {
        self.queues.iter()
    }

    pub(crate) fn get(&self, key: &QueueKey) -> Option<&ReadyQueue> {
        self.queues.get(key)
    }

    /// Returns the smallest share of all queued runs.
    pub(crate) fn least_share(&self) -> Option<Share> {
        self.queues
            .values()
            .filter_map(|queue| queue.first().map(|(share, _)| share))
            .min()
    }

    pub(crate) fn insert(
        &mut self,
        key: &QueueKey,
        run: RunId,
        share: Share,
        task: TaskRef,
        ready: ReadyEntry,
    ) {
        if !self.queues.contains_key(key) {
            self.queues.insert(key.clone(), ReadyQueue::default());
        }
        let Some(queue) = self.queues.get_mut(key) else {
            return;
        };
        queue.order.insert((share, run));
        if queue
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
        key: &QueueKey,
        run: RunId,
        share: Share,
        task: TaskRef,
    ) -> Option<ReadyEntry> {
        let queue = self.queues.get_mut(key)?;
        let tasks = queue.tasks.get_mut(&run)?;
        let ready = tasks.remove(&task)?;
        self.ready -= 1;
        if tasks.is_empty() {
            queue.tasks.remove(&run);
            queue.order.remove(&(share, run));
        }
        if queue.tasks.is_empty() {
            self.queues.remove(key);
        }
        Some(ready)
    }

    /// Removes all tasks of a run from this queue and returns how many there were.
    pub(crate) fn remove_run(&mut self, key: &QueueKey, run: RunId, share: Share) -> usize {
        let Some(queue) = self.queues.get_mut(key) else {
            return 0;
        };
        let removed = queue.tasks.remove(&run).map_or(0, |tasks| tasks.len());
        queue.order.remove(&(share, run));
        if queue.tasks.is_empty() {
            self.queues.remove(key);
        }
        self.ready -= removed;
        removed
    }

    /// Moves a run to its new position after its share changed.
    pub(crate) fn reorder(&mut self, key: &QueueKey, run: RunId, old: Share, new: Share) {
        if let Some(queue) = self.queues.get_mut(key)
            && queue.order.remove(&(old, run))
        {
            queue.order.insert((new, run));
        }
    }
}

impl ReadyQueue {
    /// Returns the run that is served next, with its share.
    pub(crate) fn first(&self) -> Option<(Share, RunId)> {
        self.order.first().copied()
    }

    /// Returns the run's task that is served next.
    pub(crate) fn first_of(&self, run: RunId) -> Option<TaskRef> {
        self.tasks
            .get(&run)?
            .first_key_value()
            .map(|(task, _)| *task)
    }

    pub(crate) fn holds(&self, run: RunId, task: TaskRef) -> bool {
        self.tasks
            .get(&run)
            .is_some_and(|tasks| tasks.contains_key(&task))
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.values().map(BTreeMap::len).sum()
    }

    /// Counts the tasks of this queue that would be served before the given one if no attempt
    /// ended.
    pub(crate) fn before(&self, run: RunId, share: Share, task: TaskRef) -> usize {
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
