//! Parsing of request fields.

use servo_mesh::Error;
use servo_model::RunId;
pub(crate) use servo_service::request::{comment, request_id, tenant, workspace};

use super::errors;

/// A malformed run id names a run that cannot exist.
pub(crate) fn run_id(text: &str) -> Result<RunId, Error> {
    text.parse().map_err(|_| errors::run_not_found(text))
}
