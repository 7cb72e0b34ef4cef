//! Background work that the mesh repeats.

pub(crate) mod follow_limits;
pub(crate) mod sweep_bus;
pub(crate) mod sweep_ledger;
