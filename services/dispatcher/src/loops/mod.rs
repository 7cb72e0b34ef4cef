//! What runs beside the API: the engine that owns admission, and what feeds it.

pub(crate) mod commands;
pub(crate) mod engine;
pub(crate) mod inputs;
pub(crate) mod leases;
pub(crate) mod limits;
pub(crate) mod moves;
pub(crate) mod plans;
pub(crate) mod pushes;
pub(crate) mod registry;
pub(crate) mod sessions;
pub(crate) mod streams;
