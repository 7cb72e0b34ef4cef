//! Refusals: one closed list of reasons, each with its gRPC code, and what goes with them on the wire.
//!
//! A service's own error type maps to [`Error`] in one table; `?` in a handler turns it into a `Status` that
//! carries ErrorInfo (domain `servo`) and, where it helps, field violations, quota and when to try again.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The domain of every ErrorInfo.
pub const ERROR_DOMAIN: &str = "servo";

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $wire:literal, $code:ident;)+) => {
        /// Why a call was refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $name),+ }

        impl Reason {
            pub const ALL: &'static [Reason] = &[$(Reason::$name),+];

            /// As in ErrorInfo.
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$name => $wire),+ }
            }

            pub const fn code(self) -> Code {
                match self { $(Reason::$name => Code::$code),+ }
            }
        }
    };
}

reasons! {
    CredentialsMissing = "CREDENTIALS_MISSING", Unauthenticated;
    CredentialsInvalid = "CREDENTIALS_INVALID", Unauthenticated;
    SignatureInvalid = "SIGNATURE_INVALID", Unauthenticated;
    CallerNotAllowed = "CALLER_NOT_ALLOWED", PermissionDenied;
    TenantMismatch = "TENANT_MISMATCH", PermissionDenied;
    WorkspaceMismatch = "WORKSPACE_MISMATCH", PermissionDenied;
    DeadlineRequired = "DEADLINE_REQUIRED", InvalidArgument;
    DeadlineExceeded = "DEADLINE_EXCEEDED", DeadlineExceeded;
    Overloaded = "OVERLOADED", ResourceExhausted;
    NotReady = "NOT_READY", Unavailable;
    DependencyUnavailable = "DEPENDENCY_UNAVAILABLE", Unavailable;
    NotImplemented = "NOT_IMPLEMENTED", Unimplemented;
    Internal = "INTERNAL", Internal;
    InvalidField = "INVALID_FIELD", InvalidArgument;
    MessageTooLarge = "MESSAGE_TOO_LARGE", InvalidArgument;
}

/// A refusal: the reason, a sentence, and what helps the caller.
#[derive(Debug, Clone)]
pub struct Error(Box<Refusal>);

// Behind a pointer, since it travels in every Result and is rare.
#[derive(Debug, Clone)]
struct Refusal {
    reason: Reason,
    message: String,
    metadata: HashMap<String, String>,
    violations: Vec<(String, String)>,
    quota: Vec<(String, String)>,
    retry_after: Option<Duration>,
}

impl Error {
    pub fn new(reason: Reason, message: impl Into<String>) -> Error {
        Error(Box::new(Refusal {
            reason,
            message: message.into(),
            metadata: HashMap::new(),
            violations: Vec::new(),
            quota: Vec::new(),
            retry_after: None,
        }))
    }

    /// A request whose `field` is wrong.
    pub fn bad_field(field: impl Into<String>, sentence: impl Into<String>) -> Error {
        let (field, sentence) = (field.into(), sentence.into());
        Error::new(Reason::InvalidField, format!("{field}: {sentence}")).and_bad_field(field, sentence)
    }

    #[must_use]
    pub fn and_bad_field(mut self, field: impl Into<String>, sentence: impl Into<String>) -> Error {
        self.0.violations.push((field.into(), sentence.into()));
        self
    }

    #[must_use]
    pub fn over_quota(mut self, subject: impl Into<String>, sentence: impl Into<String>) -> Error {
        self.0.quota.push((subject.into(), sentence.into()));
        self
    }

    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Error {
        self.0.retry_after = Some(delay);
        self
    }

    /// A fact about the refusal for programs to read; never a secret.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Error {
        self.0.metadata.insert(key.into(), value.into());
        self
    }

    pub fn reason(&self) -> Reason {
        self.0.reason
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

impl From<Error> for Status {
    fn from(Error(error): Error) -> Status {
        let mut details = ErrorDetails::with_error_info(error.reason.name(), ERROR_DOMAIN, error.metadata);
        for (field, sentence) in error.violations {
            details.add_bad_request_violation(field, sentence);
        }
        for (subject, sentence) in error.quota {
            details.add_quota_failure_violation(subject, sentence);
        }
        if error.retry_after.is_some() {
            details.set_retry_info(error.retry_after);
        }
        Status::with_error_details(error.reason.code(), error.message, details)
    }
}

/// The reason in a status that a service of ours answered.
pub fn reason_of(status: &Status) -> Option<Reason> {
    let info = status.get_details_error_info().filter(|info| info.domain == ERROR_DOMAIN)?;
    Reason::ALL.iter().copied().find(|reason| reason.name() == info.reason)
}
