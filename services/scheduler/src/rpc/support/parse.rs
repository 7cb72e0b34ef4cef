//! Parsing of request fields.

use servo_mesh::Error;
use servo_model::limits::COMMENT_BYTES_MAX;
use servo_model::{RunId, TenantId, WorkspaceId};

use super::errors;

const REQUEST_ID_BYTES_MAX: usize = 128;

pub(crate) fn tenant(text: &str) -> Result<TenantId, Error> {
    text.parse()
        .map_err(|error| Error::bad_field("tenant", format!("{error}")))
}

pub(crate) fn workspace(text: &str) -> Result<WorkspaceId, Error> {
    text.parse()
        .map_err(|error| Error::bad_field("workspace", format!("{error}")))
}

/// Checks the caller's id of a mutation.
pub(crate) fn request_id(text: &str) -> Result<(), Error> {
    if text.len() > REQUEST_ID_BYTES_MAX || text.chars().any(char::is_control) {
        let message = format!(
            "is longer than {REQUEST_ID_BYTES_MAX} bytes or contains control characters; shorten it"
        );
        return Err(Error::bad_field("request_id", message));
    }
    Ok(())
}

/// Checks the size of a comment, which is stored in an event.
pub(crate) fn comment(text: &str) -> Result<(), Error> {
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
pub(crate) fn run_id(text: &str) -> Result<RunId, Error> {
    text.parse().map_err(|_| errors::run_not_found(text))
}
