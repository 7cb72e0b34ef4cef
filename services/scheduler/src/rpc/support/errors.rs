//! Errors that callers get.

pub(crate) use crate::reads::errors::{bad_page_token, run_not_found, store, task_not_found};
