//! Decisions of the planner: what a manifest means, which assets and partitions are wanted, what a plan holds.

pub(crate) mod canonical;
pub(crate) mod check;
pub(crate) mod choose;
pub(crate) mod deployed;
pub(crate) mod diff;
pub(crate) mod expand;
pub(crate) mod freshness;
pub(crate) mod lineage;
pub(crate) mod nearest;
pub(crate) mod plan;
pub(crate) mod plan_diff;
pub(crate) mod plan_page;
pub(crate) mod refusal;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod settings;
pub(crate) mod survey;
mod unrepeated;
