//! Helpers that several RPCs share.

pub(crate) mod presigned;
pub(super) mod report;
