//! The scheduler's rows.

pub(crate) mod requests;
mod run_lookup;
mod runs;

pub(crate) use run_lookup::{ExistingRun, find_runs};
pub(crate) use runs::{StoredRun, StoredTask, open_runs, runs_by_id, tasks_of};
