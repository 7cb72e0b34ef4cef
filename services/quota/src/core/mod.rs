//! Pure decisions of the quota service.

pub(crate) mod budgets;
pub(crate) mod limits;
pub(crate) mod limits_snapshot;
pub(crate) mod pools;
pub(crate) mod prices;
pub(crate) mod report;
pub(crate) mod text;
pub(crate) mod usage;
