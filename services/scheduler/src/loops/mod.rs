//! What goes on beside the calls.

mod limits;
mod plan_runs;
mod sweeps;

pub(crate) use limits::Follower;
pub(crate) use plan_runs::{Desk, plan_runs};
pub(crate) use sweeps::{SWEEP_BUS_EVERY, SWEEP_LEDGER_EVERY, sweep_bus, sweep_ledger};
