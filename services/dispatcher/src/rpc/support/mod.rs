//! Helpers that several RPCs share.

pub(super) mod events;
pub(super) mod forward;
pub(super) mod pages;
pub(super) mod parse;
pub(super) mod rows;
pub(super) mod worker_command;
pub(super) mod workspaces;
