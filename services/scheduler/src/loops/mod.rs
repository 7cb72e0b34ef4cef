//! What goes on beside the calls.

mod plan_runs;

pub(crate) use plan_runs::plan_runs;
