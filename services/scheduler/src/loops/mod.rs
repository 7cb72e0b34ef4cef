//! What goes on beside the calls.

mod limits;
mod plan_runs;

pub(crate) use limits::Follower;
pub(crate) use plan_runs::{Desk, plan_runs};
