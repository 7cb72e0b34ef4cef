//! One file per command.

pub(crate) mod dev;
pub(crate) mod migrate;
pub(crate) mod rebuild;
pub(crate) mod serve;
