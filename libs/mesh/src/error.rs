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
    /// A field of the request is wrong; the violations say which and why.
    InvalidArgument = "INVALID_ARGUMENT", InvalidArgument;
    NotFound = "NOT_FOUND", NotFound;
    AlreadyExists = "ALREADY_EXISTS", AlreadyExists;
    /// The state of the thing does not allow it.
    FailedPrecondition = "FAILED_PRECONDITION", FailedPrecondition;
    /// The version given is not the current one.
    VersionMismatch = "VERSION_MISMATCH", Aborted;
    /// Nobody proved who is calling.
    Unauthenticated = "UNAUTHENTICATED", Unauthenticated;
    /// The certificate of the caller is not among those that may call this.
    CallerNotAllowed = "CALLER_NOT_ALLOWED", PermissionDenied;
    /// The principal lacks the permission.
    PermissionDenied = "PERMISSION_DENIED", PermissionDenied;
    /// The request is about another tenant or workspace than the caller's. Also said when it does not exist.
    TenantMismatch = "TENANT_MISMATCH", PermissionDenied;
    /// The attempt's signature is absent, forged or expired.
    SignatureRefused = "SIGNATURE_REFUSED", PermissionDenied;
    DeadlineRequired = "DEADLINE_REQUIRED", InvalidArgument;
    DeadlineExceeded = "DEADLINE_EXCEEDED", DeadlineExceeded;
    MessageTooLarge = "MESSAGE_TOO_LARGE", ResourceExhausted;
    /// Too many calls under way; the same call will be taken a little later.
    Overloaded = "OVERLOADED", ResourceExhausted;
    QuotaExceeded = "QUOTA_EXCEEDED", ResourceExhausted;
    /// The service has not what it needs yet.
    NotReady = "NOT_READY", Unavailable;
    /// The service is going away; another instance takes the call.
    Draining = "DRAINING", Unavailable;
    /// A service behind this one does not answer.
    PeerUnavailable = "PEER_UNAVAILABLE", Unavailable;
    /// A service behind this one and we do not accept each other's certificate.
    PeerNotTrusted = "PEER_NOT_TRUSTED", Unavailable;
    StoreUnavailable = "STORE_UNAVAILABLE", Unavailable;
    NotImplemented = "NOT_IMPLEMENTED", Unimplemented;
    /// A fault of ours that the caller cannot put right.
    Internal = "INTERNAL", Internal;
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
        Error::new(Reason::InvalidArgument, format!("{field}: {sentence}")).and_bad_field(field, sentence)
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
