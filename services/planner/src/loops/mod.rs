//! Background loops of the planner.

pub(crate) mod expire_requests;
pub(crate) mod limits;
