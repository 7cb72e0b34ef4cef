//! Background loops of the planner.

pub(crate) mod limits;
