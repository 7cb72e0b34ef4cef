//! The scheduler's rows.

mod known;
pub(crate) mod requests;
mod runs;

pub(crate) use known::{KnownRun, known_runs};
pub(crate) use runs::{StoredRun, StoredTask, open_runs, runs_by_id, tasks_of};
