//! Maps failures to the errors that callers receive.

use servo_mesh::{Error, Reason};
use servo_store::{AppendError, StoreError};
use tracing::error;

use crate::core::text::BadField;

pub(crate) fn field_error(field: BadField) -> Error {
    Error::bad_field(field.field, field.sentence)
}

pub(crate) fn store_error(failure: StoreError) -> Error {
    if failure.is_transient() {
        return Error::new(Reason::DependencyUnavailable, failure.to_string());
    }
    error!(%failure, "a SQL statement failed");
    Error::new(
        Reason::Internal,
        "the quota service could not read or write its rows",
    )
}

pub(crate) fn append_error(failure: AppendError) -> Error {
    match failure {
        AppendError::Store(failure) => store_error(failure),
        AppendError::BadEvent(_) | AppendError::TooManyEvents(_) => {
            error!(%failure, "the ledger rejected an event");
            Error::new(
                Reason::Internal,
                "the quota service built an event that the ledger rejects",
            )
        }
    }
}
