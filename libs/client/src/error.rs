//! Why a call did not work out.

use std::collections::HashMap;
use std::time::Duration;

pub use servo_proto::v1::ErrorReason as Reason;
use tonic::{Code, Status};
use tonic_types::StatusExt;

const DOMAIN: &str = "servo";

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The server said no.
    #[error("{message}")]
    Refused {
        code: Code,
        /// From the closed list, when the server gave one.
        reason: Option<Reason>,
        message: String,
        /// What is wrong with the request, field by field.
        violations: Vec<Violation>,
        /// When to try again.
        retry_after: Option<Duration>,
        /// More about the reason, such as the limit that was met.
        metadata: HashMap<String, String>,
    },
    /// There is no server, or it went away.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// What the client was given is wrong.
    #[error("{0}")]
    Config(String),
    /// The server said something that cannot be.
    #[error("the answer is not what was asked for: {0}")]
    Malformed(String),
}

/// A field and what is wrong with it.
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

/// Whether there may be an answer later: no server can be reached, or none that can serve just now, or it went away while
/// it spoke. What a server said itself has no error behind it.
pub(crate) fn is_broken(status: &Status) -> bool {
    status.code() == Code::Unavailable || std::error::Error::source(status).is_some()
}
