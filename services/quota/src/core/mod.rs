//! Decisions: no async, no clock, no SQL, no randomness.

pub(crate) mod budgets;
pub(crate) mod limits;
pub(crate) mod picture;
pub(crate) mod pools;
pub(crate) mod prices;
pub(crate) mod report;
pub(crate) mod text;
pub(crate) mod usage;
