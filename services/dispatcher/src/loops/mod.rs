//! Background work that the mesh repeats.

pub(crate) mod commands;
pub(crate) mod limits;
pub(crate) mod push_workers;
pub(crate) mod registry;
pub(crate) mod scheduler_streams;
