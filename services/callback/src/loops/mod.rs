//! Background work that the mesh repeats.

pub(crate) mod health;
pub(crate) mod sweep;
