//! Helpers that several methods share.

pub(super) mod asset_partitions;
pub(super) mod blocking;
pub(super) mod dynamic_sets;
pub(super) mod errors;
pub(super) mod events;
pub(super) mod filtered_page;
pub(super) mod filters;
pub(super) mod idempotency;
pub(super) mod parse;
pub(super) mod staleness;
