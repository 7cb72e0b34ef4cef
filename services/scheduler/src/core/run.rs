//! A run that is under way.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_model::edges::{EdgeResolution, Tally};
use servo_model::states::{Machine, RunCause, RunState, TaskState, TransitionReason};
use servo_model::{RunId, TenantId, WorkspaceId};

use super::Time;
use super::cell::{Cell, Slot};
use super::graph::Graph;

/// How a run came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerType {
    Manual,
    Schedule,
    Sensor,
    Backfill,
    Condition,
}

impl TriggerType {
    pub const fn name(self) -> &'static str {
        match self {
            TriggerType::Manual => "manual",
            TriggerType::Schedule => "schedule",
            TriggerType::Sensor => "sensor",
            TriggerType::Backfill => "backfill",
            TriggerType::Condition => "condition",
        }
    }
}

/// What a run was born with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHeader {
    pub run_id: RunId,
    /// From shard and position of the run's first event, so that a rebuild finds the same number.
    pub number: i64,
    pub tenant: TenantId,
    pub workspace: WorkspaceId,
    /// What the request said, in canonical form.
    pub fingerprint: [u8; 32],
    pub created_at: Time,
    /// When it is timed out.
    pub deadline: Option<Time>,
    /// Added to every task's priority.
    pub priority: i32,
    pub backfill: bool,
    pub trigger: TriggerType,
    /// The trace that asked for it, for envelopes.
    pub traceparent: Arc<str>,
}

/// Who stopped a run that is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedBy {
    Principal,
    Time,
}

/// Its tasks by how they stand, children of mapped tasks included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts([u32; 12]);

impl Counts {
    pub fn of(&self, state: TaskState) -> u32 {
        self.0[state.code() as usize]
    }

    pub fn total(&self) -> u32 {
        self.0.iter().sum()
    }

    fn add(&mut self, state: TaskState) {
        self.0[state.code() as usize] += 1;
    }

    fn take(&mut self, state: TaskState) {
        self.0[state.code() as usize] -= 1;
    }

    /// Tasks that somebody works at, or shall.
    pub fn with_attempt(&self) -> u32 {
        TaskState::ALL
            .iter()
            .filter(|state| state.has_attempt())
            .map(|state| self.of(*state))
            .sum()
    }

    /// Tasks that have not ended.
    pub fn open(&self) -> u32 {
        let ended = TaskState::ALL
            .iter()
            .filter(|state| state.is_terminal())
            .map(|state| self.of(*state));
        self.total() - ended.sum::<u32>()
    }
}

#[derive(Debug, Clone)]
pub struct Run {
    pub header: RunHeader,
    pub state: RunState,
    pub reason: TransitionReason,
    pub stopped_by: Option<StoppedBy>,
    /// Counts cancel, pause and resume.
    pub version: u64,
    pub changed_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// What went wrong at the task that stands first in the plan.
    pub error: Option<(u32, String)>,
    pub graph: Option<Arc<Graph>>,
    pub(super) cells: Vec<Cell>,
    /// How the upstreams of each task stand.
    pub(super) upstreams: Vec<Tally>,
    /// What each mapped task became.
    pub(super) children: BTreeMap<u32, Children>,
    /// What tasks named for those mapped over them.
    pub(super) items: BTreeMap<u32, (u32, Arc<[u8]>)>,
    pub(super) counts: Counts,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Children {
    pub(super) cells: Vec<Cell>,
    pub(super) tally: Tally,
}

impl Run {
    /// A run that was just asked for.
    pub fn requested(header: RunHeader) -> Run {
        let changed_at = header.created_at;
        Run {
            header,
            state: RunState::INITIAL,
            reason: TransitionReason::CREATED,
            stopped_by: None,
            version: 0,
            changed_at,
            started_at: None,
            ended_at: None,
            error: None,
            graph: None,
            cells: Vec::new(),
            upstreams: Vec::new(),
            children: BTreeMap::new(),
            items: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// A run as its rows tell it. What is derived is derived anew.
    pub fn restore(
        mut self,
        graph: Arc<Graph>,
        cells: impl IntoIterator<Item = (Slot, Cell)>,
        items: BTreeMap<u32, (u32, Arc<[u8]>)>,
    ) -> Run {
        self.cells = vec![Cell::planned(self.header.created_at); graph.tasks.len()];
        for (slot, cell) in cells {
            self.counts.add(cell.state);
            match slot.item {
                None => self.cells[slot.ordinal as usize] = cell,
                Some(_) => self
                    .children
                    .entry(slot.ordinal)
                    .or_default()
                    .cells
                    .push(cell),
            }
        }
        self.upstreams = graph
            .tasks
            .iter()
            .map(|task| {
                task.upstream
                    .iter()
                    .map(|up| self.cells[*up as usize].resolution())
                    .collect()
            })
            .collect();
        for children in self.children.values_mut() {
            children.tally = children.cells.iter().map(Cell::resolution).collect();
        }
        self.items = items;
        self.graph = Some(graph);
        self
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    pub fn cell(&self, slot: Slot) -> Option<&Cell> {
        match slot.item {
            None => self.cells.get(slot.ordinal as usize),
            Some(item) => self.children.get(&slot.ordinal)?.cells.get(item as usize),
        }
    }

    /// Every task in the plan's order, children after their parent.
    pub fn cells(&self) -> impl Iterator<Item = (Slot, &Cell)> {
        (0u32..).zip(&self.cells).flat_map(|(ordinal, cell)| {
            let children = self
                .children
                .get(&ordinal)
                .into_iter()
                .flat_map(|children| &children.cells);
            let children = (0u32..)
                .zip(children)
                .map(move |(item, cell)| (Slot::child(ordinal, item), cell));
            std::iter::once((Slot::planned(ordinal), cell)).chain(children)
        })
    }

    /// The encoded items that a task named.
    pub fn items(&self, ordinal: u32) -> Option<&(u32, Arc<[u8]>)> {
        self.items.get(&ordinal)
    }

    /// Whether its ready tasks may be admitted.
    pub fn admits(&self) -> bool {
        self.state == RunState::Running
    }

    pub(super) fn cell_mut(&mut self, slot: Slot) -> Option<&mut Cell> {
        match slot.item {
            None => self.cells.get_mut(slot.ordinal as usize),
            Some(item) => self
                .children
                .get_mut(&slot.ordinal)?
                .cells
                .get_mut(item as usize),
        }
    }

    pub(super) fn recount(&mut self, from: Option<TaskState>, to: TaskState) {
        if let Some(from) = from {
            self.counts.take(from);
        }
        self.counts.add(to);
    }

    /// Looks the cause up in the closed table. Answers whether the state changed.
    pub(super) fn on(&mut self, cause: RunCause, at: Time) -> bool {
        let Some((state, reason)) = self.state.on(cause) else {
            return false;
        };
        (self.state, self.reason, self.changed_at) = (state, reason, at);
        if state.is_terminal() {
            self.ended_at = Some(at);
        }
        true
    }

    /// How its own tasks stand, children left to their parents.
    pub(super) fn tally(&self) -> (u32, u32) {
        let ended = |resolution| {
            self.cells
                .iter()
                .filter(|cell| cell.resolution() == Some(resolution))
                .count()
        };
        (
            ended(EdgeResolution::Failed) as u32,
            ended(EdgeResolution::Cancelled) as u32,
        )
    }
}
