//! Mapping of failed statements to errors of the API.

use servo_mesh::{Error, Reason};
use servo_store::{AppendError, StoreError};

/// Maps a transient failure to DEPENDENCY_UNAVAILABLE, so that the caller retries, and any other
/// failure to INTERNAL.
pub(in crate::rpc) fn store_error(error: StoreError) -> Error {
    let reason = if error.is_transient() {
        Reason::DependencyUnavailable
    } else {
        Reason::Internal
    };
    Error::new(reason, error.to_string())
}

pub(in crate::rpc) fn append_error(error: AppendError) -> Error {
    match error {
        AppendError::Store(error) => store_error(error),
        other => Error::new(Reason::Internal, other.to_string()),
    }
}
