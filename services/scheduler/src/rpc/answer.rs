//! What went wrong, as callers are told.

use servo_mesh::filter::{Operator, Term, bad_filter};
use servo_mesh::{Error, Reason};
use servo_model::limits::COMMENT_BYTES_MAX;
use servo_model::{RunId, TenantId, WorkspaceId};
use servo_store::{StoreError, Timestamp};

pub(super) const PAGE_DEFAULT: usize = 20;
pub(super) const PAGE_MAX: usize = 100;
const REQUEST_ID_BYTES_MAX: usize = 128;
/// Later than everything: the year 9999.
pub(super) const NEWEST: i64 = 253_370_764_800_000_000;
/// Earlier than everything: 1970.
const OLDEST: i64 = 0;

pub(super) fn store(error: StoreError) -> Error {
    match error {
        error if error.is_transient() => Error::new(Reason::NotReady, error.to_string()),
        other => {
            tracing::error!(error = %other, "the store refused");
            Error::new(
                Reason::Internal,
                "the store refused; the log of the scheduler says why",
            )
        }
    }
}

pub(super) fn run_not_found(run_id: &str) -> Error {
    Error::new(Reason::RunNotFound, format!("run {run_id} does not exist")).with("run_id", run_id)
}

pub(super) fn task_not_found(run_id: &str, task_id: &str) -> Error {
    Error::new(
        Reason::TaskNotFound,
        format!("run {run_id} has no task {task_id}"),
    )
    .with("task_id", task_id)
}

pub(super) fn tenant(text: &str) -> Result<TenantId, Error> {
    text.parse()
        .map_err(|error| Error::bad_field("tenant", format!("{error}")))
}

pub(super) fn workspace(text: &str) -> Result<WorkspaceId, Error> {
    text.parse()
        .map_err(|error| Error::bad_field("workspace", format!("{error}")))
}

/// A call that changes something names itself, so that a repeat is no second change.
pub(super) fn request_id(text: &str) -> Result<(), Error> {
    if text.len() > REQUEST_ID_BYTES_MAX || text.chars().any(char::is_control) {
        let message = format!(
            "is longer than {REQUEST_ID_BYTES_MAX} bytes or holds control characters; shorten it"
        );
        return Err(Error::bad_field("request_id", message));
    }
    Ok(())
}

/// What is said about a call stands in an event.
pub(super) fn comment(text: &str) -> Result<(), Error> {
    if text.len() > COMMENT_BYTES_MAX {
        let message = format!(
            "has {} bytes, and {COMMENT_BYTES_MAX} are allowed; shorten it",
            text.len()
        );
        return Err(Error::bad_field("comment", message));
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
    found
        .map(Into::into)
        .ok_or_else(|| bad_filter(&format!("`{}` is no {}", term.value, term.field)))
}

/// What a field is asked to be.
pub(super) fn is(terms: &[Term], field: &str) -> Result<Option<String>, Error> {
    let Some(term) = terms.iter().find(|term| term.field == field) else {
        return Ok(None);
    };
    match term.operator {
        Operator::Is => Ok(Some(term.value.clone())),
        _ => Err(bad_filter(&format!("`{field}` is compared with = only"))),
    }
}

/// From when, and before when, by the terms about a time: the narrowest that all of them allow.
pub(super) fn within(terms: &[Term], field: &str) -> Result<(Timestamp, Timestamp), Error> {
    let (mut from, mut until) = (OLDEST, NEWEST);
    for term in terms.iter().filter(|term| term.field == field) {
        // Rows bear microseconds: what is later than a time begins with the next one.
        let nanos = term.time()?;
        let (floor, ceiling) = (
            micros(nanos.div_euclid(1_000)),
            micros((nanos + 999).div_euclid(1_000)),
        );
        match term.operator {
            Operator::AtLeast => from = from.max(ceiling),
            Operator::Greater => from = from.max(floor + 1),
            Operator::Less => until = until.min(ceiling),
            Operator::AtMost => until = until.min(floor + 1),
            _ => {
                return Err(bad_filter(&format!(
                    "`{field}` is compared with <, <=, > and >= only"
                )));
            }
        }
    }
    Ok((
        Timestamp::from_unix_us(from),
        Timestamp::from_unix_us(until),
    ))
}

fn micros(micros: i128) -> i64 {
    i64::try_from(micros)
        .unwrap_or(NEWEST)
        .clamp(OLDEST, NEWEST)
}
