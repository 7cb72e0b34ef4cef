//! Parts that several RPCs share.

pub(super) mod errors;
pub(super) mod generations;
pub(super) mod pages;
pub(super) mod parse;
pub(super) mod remote_watch;
pub(super) mod request_ids;
pub(crate) mod routing;
pub(super) mod run_control;
pub(super) mod start_run;
pub(super) mod verdicts;
pub(super) mod wait;
