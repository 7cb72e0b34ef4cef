//! One file per command.

pub mod local;
pub mod migrate;
pub mod serve;
