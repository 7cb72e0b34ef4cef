//! The scheduler's rows.

mod runs;

pub(crate) use runs::{StoredRun, StoredTask, open_runs, runs_by_id, tasks_of};
