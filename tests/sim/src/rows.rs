//! Rows of runs and tasks: written as a flush writes them, only what its changes name, and read back as a new holder
//! reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_model::RunId;
use servo_model::states::{RunState, TransitionReason};
use servo_scheduler::core::{Cell, Changes, Graph, Run, RunHeader, Slot, StoppedBy, Time};

type Items = (u32, Arc<[u8]>);

/// The columns of a run that change.
#[derive(Debug, Clone)]
pub struct RunColumns {
    pub state: RunState,
    pub reason: TransitionReason,
    pub stopped_by: Option<StoppedBy>,
    pub version: u64,
    pub changed_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub error: Option<(u32, String)>,
    pub graph: Option<Arc<Graph>>,
}

#[derive(Debug, Clone)]
pub struct RunRow {
    pub header: RunHeader,
    pub run: RunColumns,
    pub cells: BTreeMap<Slot, Cell>,
    pub items: BTreeMap<u32, Items>,
}

/// What one flush writes of one run.
#[derive(Debug, Clone)]
pub struct RowWrite {
    pub run: RunId,
    born: Option<RunHeader>,
    columns: Option<RunColumns>,
    cells: Vec<(Slot, Cell)>,
    items: Vec<(u32, Items)>,
}

impl RowWrite {
    pub fn of(run: &Run, changes: &Changes, born: bool) -> RowWrite {
        let mut slots = changes.changed.clone();
        slots.sort_unstable();
        slots.dedup();
        let named = slots.iter().filter(|slot| slot.item.is_none());
        RowWrite {
            run: run.header.run_id,
            born: born.then(|| run.header.clone()),
            columns: (changes.run || born).then(|| columns(run)),
            items: named
                .filter_map(|slot| Some((slot.ordinal, run.items(slot.ordinal)?.clone())))
                .collect(),
            cells: slots
                .into_iter()
                .filter_map(|slot| Some((slot, run.cell(slot)?.clone())))
                .collect(),
        }
    }

    pub fn apply(&self, rows: &mut BTreeMap<RunId, RunRow>) {
        if let (Some(header), Some(run)) = (&self.born, &self.columns) {
            let (cells, items) = (BTreeMap::new(), BTreeMap::new());
            rows.insert(
                self.run,
                RunRow {
                    header: header.clone(),
                    run: run.clone(),
                    cells,
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
        row.cells.extend(self.cells.iter().cloned());
        row.items.extend(self.items.iter().cloned());
    }
}

impl RunRow {
    pub fn restore(&self) -> Run {
        let mut run = Run::requested(self.header.clone());
        let columns = self.run.clone();
        (run.state, run.reason, run.stopped_by) =
            (columns.state, columns.reason, columns.stopped_by);
        (run.version, run.changed_at) = (columns.version, columns.changed_at);
        (run.started_at, run.ended_at, run.error) =
            (columns.started_at, columns.ended_at, columns.error);
        match columns.graph {
            Some(graph) => {
                let cells = self.cells.iter().map(|(slot, cell)| (*slot, cell.clone()));
                run.restore(graph, cells, self.items.clone())
            }
            None => run,
        }
    }

    /// What differs between these rows and a run, as a sentence.
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
                "the row says {} v{}, the fold {} v{}",
                ours.state, ours.version, theirs.state, theirs.version
            ));
        }
        let folded: BTreeMap<Slot, &Cell> = run.cells().collect();
        if folded.len() != self.cells.len() {
            return Some(format!(
                "there are {} task rows and {} tasks",
                self.cells.len(),
                folded.len()
            ));
        }
        let other = self
            .cells
            .iter()
            .find(|(slot, cell)| folded.get(slot) != Some(cell));
        other.map(|(slot, cell)| {
            format!(
                "task {slot:?}: the row says {cell:?}, the fold {:?}",
                folded.get(slot)
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
        graph: run.graph.clone(),
    }
}
