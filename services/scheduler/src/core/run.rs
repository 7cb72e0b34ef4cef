//! A run in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_model::edges::{EdgeResolution, ResolutionCounts};
use servo_model::states::{Machine, RunCause, RunState, TaskState, TransitionReason};
use servo_model::{RunId, TenantId, Timestamp, WorkspaceId};

use super::plan::Plan;
use super::task_row::TaskRow;
use servo_model::TaskRef;

/// The trigger of a run.
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

/// The fields of a run that never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHeader {
    pub run_id: RunId,
    /// Derived from the shard and position of the run's first event, so that a rebuild gets the
    /// same number.
    pub number: i64,
    pub tenant: TenantId,
    pub workspace: WorkspaceId,
    /// The fingerprint of the request.
    pub fingerprint: [u8; 32],
    pub created_at: Timestamp,
    /// When the run times out.
    pub deadline: Option<Timestamp>,
    /// Added to every task's priority.
    pub priority: i32,
    pub backfill: bool,
    pub trigger: TriggerType,
    /// The trace of the request, for envelopes.
    pub traceparent: Arc<str>,
}

/// Why a run is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedBy {
    Principal,
    Time,
}

/// The number of tasks by state, mapped tasks included.
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

    /// Tasks with an attempt in flight.
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
    /// The number of control actions: cancel, pause, resume, force cancel.
    pub version: u64,
    pub changed_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// The error of the first failed task in plan order, with its ordinal.
    pub error: Option<(u32, String)>,
    pub plan: Option<Arc<Plan>>,
    pub(super) task_rows: Vec<TaskRow>,
    /// The resolved upstreams of each task.
    pub(super) upstreams: Vec<ResolutionCounts>,
    /// The mapped tasks of each mapped parent.
    pub(super) children: BTreeMap<u32, Children>,
    /// The items that tasks provide for mapped tasks: their number and their encoded list.
    pub(super) items: BTreeMap<u32, (u32, Arc<[u8]>)>,
    pub(super) counts: Counts,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Children {
    pub(super) task_rows: Vec<TaskRow>,
    pub(super) tally: ResolutionCounts,
}

impl Run {
    /// A new run.
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
            plan: None,
            task_rows: Vec::new(),
            upstreams: Vec::new(),
            children: BTreeMap::new(),
            items: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// Restores a run from its rows and derives the other fields.
    pub fn restore(
        mut self,
        plan: Arc<Plan>,
        task_rows: impl IntoIterator<Item = (TaskRef, TaskRow)>,
        items: BTreeMap<u32, (u32, Arc<[u8]>)>,
    ) -> Run {
        self.task_rows = vec![TaskRow::planned(self.header.created_at); plan.tasks.len()];
        for (task_ref, task_row) in task_rows {
            self.counts.add(task_row.state);
            match task_ref.map_index {
                None => self.task_rows[task_ref.ordinal as usize] = task_row,
                Some(_) => self
                    .children
                    .entry(task_ref.ordinal)
                    .or_default()
                    .task_rows
                    .push(task_row),
            }
        }
        self.upstreams = plan
            .tasks
            .iter()
            .map(|task| {
                task.upstream
                    .iter()
                    .map(|up| self.task_rows[*up as usize].resolution())
                    .collect()
            })
            .collect();
        for children in self.children.values_mut() {
            children.tally = children.task_rows.iter().map(TaskRow::resolution).collect();
        }
        self.items = items;
        self.plan = Some(plan);
        self
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    pub fn task_row(&self, task_ref: TaskRef) -> Option<&TaskRow> {
        match task_ref.map_index {
            None => self.task_rows.get(task_ref.ordinal as usize),
            Some(item) => self
                .children
                .get(&task_ref.ordinal)?
                .task_rows
                .get(item as usize),
        }
    }

    /// All tasks in plan order, mapped tasks after their parent.
    pub fn task_rows(&self) -> impl Iterator<Item = (TaskRef, &TaskRow)> {
        (0u32..)
            .zip(&self.task_rows)
            .flat_map(|(ordinal, task_row)| {
                let children = self
                    .children
                    .get(&ordinal)
                    .into_iter()
                    .flat_map(|children| &children.task_rows);
                let children = (0u32..)
                    .zip(children)
                    .map(move |(item, task_row)| (TaskRef::mapped(ordinal, item), task_row));
                std::iter::once((TaskRef::planned(ordinal), task_row)).chain(children)
            })
    }

    /// The items that a task provided.
    pub fn items(&self, ordinal: u32) -> Option<&(u32, Arc<[u8]>)> {
        self.items.get(&ordinal)
    }

    /// Whether its ready tasks may be admitted.
    pub fn admits(&self) -> bool {
        self.state == RunState::Running
    }

    pub(super) fn task_row_mut(&mut self, task_ref: TaskRef) -> Option<&mut TaskRow> {
        match task_ref.map_index {
            None => self.task_rows.get_mut(task_ref.ordinal as usize),
            Some(item) => self
                .children
                .get_mut(&task_ref.ordinal)?
                .task_rows
                .get_mut(item as usize),
        }
    }

    pub(super) fn recount(&mut self, from: Option<TaskState>, to: TaskState) {
        if let Some(from) = from {
            self.counts.take(from);
        }
        self.counts.add(to);
    }

    /// Looks up the transition in the closed table. Returns whether the state changed.
    pub(super) fn on(&mut self, cause: RunCause, at: Timestamp) -> bool {
        let Some((state, reason)) = self.state.on(cause) else {
            return false;
        };
        self.state = state;
        self.reason = reason;
        self.changed_at = at;
        if state.is_terminal() {
            self.ended_at = Some(at);
        }
        true
    }

    /// Counts ended tasks, without mapped tasks.
    pub(super) fn failed_and_cancelled(&self) -> FailedAndCancelled {
        let ended = |resolution| {
            self.task_rows
                .iter()
                .filter(|task_row| task_row.resolution() == Some(resolution))
                .count()
        };
        FailedAndCancelled {
            failed: ended(EdgeResolution::Failed) as u32,
            cancelled: ended(EdgeResolution::Cancelled) as u32,
        }
    }
}

pub(super) struct FailedAndCancelled {
    pub(super) failed: u32,
    pub(super) cancelled: u32,
}
