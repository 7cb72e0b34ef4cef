//! Rows of runs and tasks: written like a flush does, only what changed, and restored like a new
//! holder does.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_model::states::{RunState, TransitionReason};
use servo_model::{RunId, TaskRef, Timestamp};
use servo_scheduler::core::{Changes, Plan, Run, RunHeader, StoppedBy, TaskRow};

type Items = (u32, Arc<[u8]>);

/// The columns of a run that can change.
#[derive(Debug, Clone)]
pub struct RunColumns {
    pub state: RunState,
    pub reason: TransitionReason,
    pub stopped_by: Option<StoppedBy>,
    pub version: u64,
    pub changed_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub error: Option<(u32, String)>,
    pub plan: Option<Arc<Plan>>,
}

#[derive(Debug, Clone)]
pub struct RunRow {
    pub header: RunHeader,
    pub run: RunColumns,
    pub task_rows: BTreeMap<TaskRef, TaskRow>,
    pub items: BTreeMap<u32, Items>,
}

/// The rows that one flush writes for one run.
#[derive(Debug, Clone)]
pub struct RowWrite {
    pub run: RunId,
    new_header: Option<RunHeader>,
    columns: Option<RunColumns>,
    task_rows: Vec<(TaskRef, TaskRow)>,
    items: Vec<(u32, Items)>,
}

impl RowWrite {
    pub fn of(run: &Run, changes: &Changes, is_new: bool) -> RowWrite {
        let mut task_refs = changes.changed.clone();
        task_refs.sort_unstable();
        task_refs.dedup();
        let named = task_refs
            .iter()
            .filter(|task_ref| task_ref.map_index.is_none());
        RowWrite {
            run: run.header.run_id,
            new_header: is_new.then(|| run.header.clone()),
            columns: (changes.run || is_new).then(|| columns(run)),
            items: named
                .filter_map(|task_ref| {
                    Some((task_ref.ordinal, run.items(task_ref.ordinal)?.clone()))
                })
                .collect(),
            task_rows: task_refs
                .into_iter()
                .filter_map(|task_ref| Some((task_ref, run.task_row(task_ref)?.clone())))
                .collect(),
        }
    }

    pub fn apply(&self, rows: &mut BTreeMap<RunId, RunRow>) {
        if let (Some(header), Some(run)) = (&self.new_header, &self.columns) {
            let (task_rows, items) = (BTreeMap::new(), BTreeMap::new());
            rows.insert(
                self.run,
                RunRow {
                    header: header.clone(),
                    run: run.clone(),
                    task_rows,
                    items,
                },
            );
        }
        let Some(row) = rows.get_mut(&self.run) else {
            return;
        };
        if let Some(columns) = &self.columns {
            row.run = columns.clone();
        }
        row.task_rows.extend(self.task_rows.iter().cloned());
        row.items.extend(self.items.iter().cloned());
    }
}

impl RunRow {
    pub fn restore(&self) -> Run {
        let mut run = Run::requested(self.header.clone());
        let columns = self.run.clone();
        run.state = columns.state;
        run.reason = columns.reason;
        run.stopped_by = columns.stopped_by;
        run.version = columns.version;
        run.changed_at = columns.changed_at;
        run.started_at = columns.started_at;
        run.ended_at = columns.ended_at;
        run.error = columns.error;
        match columns.plan {
            Some(plan) => {
                let task_rows = self
                    .task_rows
                    .iter()
                    .map(|(task_ref, task_row)| (*task_ref, task_row.clone()));
                run.restore(plan, task_rows, self.items.clone())
            }
            None => run,
        }
    }

    /// Describes the first difference between these rows and a run.
    pub fn differs_from(&self, run: &Run) -> Option<String> {
        let (ours, theirs) = (&self.run, columns(run));
        let same = ours.state == theirs.state
            && ours.reason == theirs.reason
            && ours.stopped_by == theirs.stopped_by
            && ours.version == theirs.version
            && ours.changed_at == theirs.changed_at
            && (ours.started_at, ours.ended_at) == (theirs.started_at, theirs.ended_at)
            && ours.error == theirs.error;
        if !same {
            return Some(format!(
                "the row has {} v{}, the fold {} v{}",
                ours.state, ours.version, theirs.state, theirs.version
            ));
        }
        let folded: BTreeMap<TaskRef, &TaskRow> = run.task_rows().collect();
        if folded.len() != self.task_rows.len() {
            return Some(format!(
                "there are {} task rows and {} tasks",
                self.task_rows.len(),
                folded.len()
            ));
        }
        let other = self
            .task_rows
            .iter()
            .find(|(task_ref, task_row)| folded.get(task_ref) != Some(task_row));
        other.map(|(task_ref, task_row)| {
            format!(
                "task {task_ref:?}: the row says {task_row:?}, the fold {:?}",
                folded.get(task_ref)
            )
        })
    }
}

fn columns(run: &Run) -> RunColumns {
    RunColumns {
        state: run.state,
        reason: run.reason,
        stopped_by: run.stopped_by,
        version: run.version,
        changed_at: run.changed_at,
        started_at: run.started_at,
        ended_at: run.ended_at,
        error: run.error.clone(),
        plan: run.plan.clone(),
    }
}
