//! Background loops of the quota service.

pub(crate) mod limits;
pub(crate) mod usage;
