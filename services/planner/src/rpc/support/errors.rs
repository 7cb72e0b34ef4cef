//! Maps failures to the errors that callers receive.

use servo_mesh::{Error, Reason};
pub(crate) use servo_service::errors::{append as append_error, store as store_error};
use tracing::error;

use crate::core::refusal::Refusal;

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
