//! Maps failures to the errors that callers receive.

use servo_mesh::{Error, Reason};
use servo_store::{AppendError, StoreError};
use tracing::error;

use crate::core::refusal::Refusal;

pub(crate) fn store_error(failure: StoreError) -> Error {
    if failure.is_transient() {
        return Error::new(Reason::DependencyUnavailable, failure.to_string());
    }
    error!(%failure, "a SQL statement failed");
    Error::new(
        Reason::Internal,
        "the planner could not read or write its rows",
    )
}

pub(crate) fn append_error(failure: AppendError) -> Error {
    match failure {
        AppendError::Store(failure) => store_error(failure),
        AppendError::BadEvent(_) | AppendError::TooManyEvents(_) => {
            error!(%failure, "the ledger rejected an event");
            Error::new(
                Reason::Internal,
                "the planner built an event that the ledger rejects",
            )
        }
    }
}

/// An unreadable stored manifest is an internal error, because it was checked before it was stored.
pub(crate) fn unreadable_manifest(refusal: Refusal) -> Error {
    error!(
        message = refusal.message,
        "a stored manifest cannot be read"
    );
    Error::new(
        Reason::Internal,
        "a stored manifest cannot be read by this version of the planner",
    )
}

pub(crate) fn artifact_error(failure: std::io::Error) -> Error {
    error!(%failure, "the artifact directory is not usable");
    Error::new(
        Reason::DependencyUnavailable,
        "the artifact directory is not usable at the moment; try again",
    )
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        let error = Error::new(refusal.reason, refusal.message);
        refusal
            .violations
            .into_iter()
            .fold(error, |error, (field, sentence)| {
                error.and_bad_field(field, sentence)
            })
    }
}
