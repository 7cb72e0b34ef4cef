//! Pure decisions of the planner: what a manifest means, which assets and partitions a request
//! selects, and what a plan contains.

pub(crate) mod asset_partitions;
pub(crate) mod canonical;
pub(crate) mod check;
pub(crate) mod deployment_graph;
pub(crate) mod diff;
pub(crate) mod expand;
pub(crate) mod freshness;
mod json_keys;
pub(crate) mod lineage;
pub(crate) mod partition_selection;
pub(crate) mod plan;
pub(crate) mod plan_diff;
pub(crate) mod plan_page;
pub(crate) mod refusal;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod settings;
pub(crate) mod suggestions;
