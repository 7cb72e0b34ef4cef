//! What went wrong, as callers are told.

use servo_mesh::filter::{Operator, Term, bad_filter};
use servo_mesh::{Error, Reason};
use servo_model::{RunId, TenantId, WorkspaceId};
use servo_store::StoreError;

pub(super) const PAGE_DEFAULT: usize = 20;
pub(super) const PAGE_MAX: usize = 100;
const REQUEST_ID_BYTES_MAX: usize = 128;

pub(super) fn store(error: StoreError) -> Error {
    match error {
        StoreError::Unavailable(_) | StoreError::Raced(_) => Error::new(Reason::NotReady, error.to_string()),
        other => {
            tracing::error!(error = %other, "the store refused");
            Error::new(Reason::Internal, "the store refused; the log of the scheduler says why")
        }
    }
}

pub(super) fn run_not_found(run_id: &str) -> Error {
    Error::new(Reason::RunNotFound, format!("run {run_id} does not exist")).with("run_id", run_id)
}

pub(super) fn task_not_found(run_id: &str, task_id: &str) -> Error {
    Error::new(Reason::TaskNotFound, format!("run {run_id} has no task {task_id}")).with("task_id", task_id)
}

pub(super) fn tenant(text: &str) -> Result<TenantId, Error> {
    text.parse().map_err(|error| Error::bad_field("tenant", format!("{error}")))
}

pub(super) fn workspace(text: &str) -> Result<WorkspaceId, Error> {
    text.parse().map_err(|error| Error::bad_field("workspace", format!("{error}")))
}

/// A call that changes something names itself, so that a repeat is no second change.
pub(super) fn request_id(text: &str) -> Result<(), Error> {
    if text.len() > REQUEST_ID_BYTES_MAX || text.chars().any(char::is_control) {
        let told =
            format!("is longer than {REQUEST_ID_BYTES_MAX} bytes or holds control characters; shorten it");
        return Err(Error::bad_field("request_id", told));
    }
    Ok(())
}

/// A malformed run id names a run that cannot exist.
pub(super) fn run_id(text: &str) -> Result<RunId, Error> {
    text.parse().map_err(|_| run_not_found(text))
}

/// A value by its name in a filter, with or without the prefix that all names of its enum share.
pub(super) fn named<E: Into<i32>>(
    from_name: fn(&str) -> Option<E>,
    prefix: &str,
    term: &Term,
) -> Result<i32, Error> {
    let upper = term.value.to_ascii_uppercase();
    let found = from_name(&upper).or_else(|| from_name(&format!("{prefix}{upper}")));
    found.map(Into::into).ok_or_else(|| bad_filter(&format!("`{}` is no {}", term.value, term.field)))
}

/// Whether the term compares by `=` rather than `!=`; it may do nothing else.
pub(super) fn is_equality(term: &Term) -> Result<bool, Error> {
    match term.operator {
        Operator::Is => Ok(true),
        Operator::IsNot => Ok(false),
        _ => Err(bad_filter(&format!("`{}` takes = and != only", term.field))),
    }
}

/// The value of a term about a time, in nanoseconds since 1970.
pub(super) fn time(term: &Term) -> Result<i128, Error> {
    let at: jiff::Timestamp = term.value.parse().map_err(|_| {
        let form = "2026-01-31T12:00:00Z";
        bad_filter(&format!("`{}` is no time; write {} like \"{form}\"", term.value, term.field))
    })?;
    Ok(at.as_nanosecond())
}
