//! What goes on beside the calls.

mod limits;
mod sweeps;

pub(crate) use limits::LimitsFollower;
pub(crate) use sweeps::{SWEEP_BUS_EVERY, SWEEP_LEDGER_EVERY, sweep_bus, sweep_ledger};
