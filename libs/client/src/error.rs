//! The errors of a call.

use std::collections::HashMap;
use std::time::Duration;

pub use servo_proto::v1::ErrorReason as Reason;
use tonic::{Code, Status};
use tonic_types::StatusExt;

const DOMAIN: &str = "servo";

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The server refused the call.
    #[error("{message}")]
    Refused {
        code: Code,
        /// The reason, if the server gave one.
        reason: Option<Reason>,
        message: String,
        /// The faults of the request, by field.
        violations: Vec<Violation>,
        /// When a retry may succeed.
        retry_after: Option<Duration>,
        /// Further details of the reason, such as the limit that was reached.
        metadata: HashMap<String, String>,
    },
    /// The server cannot be reached, or the connection broke.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The settings or arguments of the client are invalid.
    #[error("{0}")]
    Config(String),
    /// The response of the server is not valid.
    #[error("the response is invalid: {0}")]
    Malformed(String),
}

/// A field of the request and its fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub field: String,
    pub description: String,
}

impl Error {
    pub(crate) fn config(key: &str, address: &str, error: &dyn std::error::Error) -> Error {
        Error::Config(format!(
            "{key}: cannot connect to `{address}`: {error}; write https://host:port"
        ))
    }

    /// The reason of a refusal.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Error::Refused { reason, .. } => *reason,
            Error::Unreachable(_) | Error::Config(_) | Error::Malformed(_) => None,
        }
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Error {
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == DOMAIN);
        if info.is_none() && is_broken(&status) {
            return Error::Unreachable(status.message().to_owned());
        }
        let violations = details
            .bad_request()
            .into_iter()
            .flat_map(|bad| bad.field_violations.clone());
        Error::Refused {
            code: status.code(),
            reason: info
                .and_then(|info| Reason::from_str_name(&format!("ERROR_REASON_{}", info.reason))),
            message: status.message().to_owned(),
            violations: violations
                .map(|violation| Violation {
                    field: violation.field,
                    description: violation.description,
                })
                .collect(),
            retry_after: details.retry_info().and_then(|info| info.retry_delay),
            metadata: info.map(|info| info.metadata.clone()).unwrap_or_default(),
        }
    }
}

/// Whether a retry may succeed: the server cannot be reached, is temporarily unavailable, or the
/// connection broke. A status with a source is an error of the connection, not a response of the
/// server.
pub(crate) fn is_broken(status: &Status) -> bool {
    status.code() == Code::Unavailable || std::error::Error::source(status).is_some()
}
