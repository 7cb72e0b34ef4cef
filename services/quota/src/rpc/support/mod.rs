//! Helpers that several methods share.

pub(super) mod change;
pub(super) mod current_use;
pub(super) mod errors;
pub(super) mod ids;
pub(super) mod parse;
pub(super) mod report;
