//! Mapping of store errors and missing rows to the errors that callers get.

use servo_mesh::{Error, Reason};
pub(crate) use servo_service::errors::store;

pub(crate) fn run_not_found(run_id: &str) -> Error {
    Error::new(Reason::RunNotFound, format!("run {run_id} does not exist")).with("run_id", run_id)
}

pub(crate) fn task_not_found(run_id: &str, task_id: &str) -> Error {
    Error::new(
        Reason::TaskNotFound,
        format!("run {run_id} has no task {task_id}"),
    )
    .with("task_id", task_id)
}

/// The error for a page token that another list issued.
pub(crate) fn bad_page_token(list: &str) -> Error {
    Error::new(
        Reason::InvalidPageToken,
        format!("page_token was not issued by {list}; start from the first page"),
    )
}
