//! Errors that calls return: one closed list of reasons, each with its gRPC code and details.
//!
//! A service's own error type maps to [`Error`] in one table; `?` in a handler turns it into a
//! `Status` that carries ErrorInfo (domain `servo`) and, where it helps, field violations, quota
//! violations and a retry delay.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

pub use servo_proto::v1::ErrorReason as Reason;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The domain of every ErrorInfo.
pub const ERROR_DOMAIN: &str = "servo";

/// The name of a reason in ErrorInfo (`RUN_NOT_FOUND`).
pub fn name(reason: Reason) -> &'static str {
    let full = reason.as_str_name();
    full.strip_prefix("ERROR_REASON_").unwrap_or(full)
}

/// The status code of a reason.
pub const fn code(reason: Reason) -> Code {
    match reason {
        Reason::CredentialsMissing
        | Reason::CredentialsInvalid
        | Reason::CredentialsExpired
        | Reason::CredentialsRevoked
        | Reason::SignatureInvalid
        | Reason::SignatureExpired => Code::Unauthenticated,
        Reason::PermissionDenied
        | Reason::CallerNotAllowed
        | Reason::TenantMismatch
        | Reason::WorkspaceMismatch
        | Reason::TenantSuspended
        | Reason::WorkspaceSuspended => Code::PermissionDenied,
        Reason::DeadlineRequired
        | Reason::InvalidField
        | Reason::InvalidFilter
        | Reason::InvalidPageToken
        | Reason::MessageTooLarge
        | Reason::RequestIdRequired
        | Reason::RequestIdReused
        | Reason::ManifestInvalid
        | Reason::CycleDetected
        | Reason::DigestMismatch
        | Reason::SelectionInvalid
        | Reason::PartitionInvalid => Code::InvalidArgument,
        Reason::DeadlineExceeded | Reason::WaitTimeout => Code::DeadlineExceeded,
        Reason::Overloaded | Reason::RateLimited | Reason::QuotaExceeded | Reason::BudgetSpent => {
            Code::ResourceExhausted
        }
        Reason::NotReady | Reason::DependencyUnavailable | Reason::NotHolder => Code::Unavailable,
        Reason::NotImplemented => Code::Unimplemented,
        Reason::Unspecified | Reason::Internal => Code::Internal,
        Reason::CallerCancelled => Code::Cancelled,
        Reason::ResumeTokenExpired | Reason::PartitionOutOfRange => Code::OutOfRange,
        Reason::TenantNotFound
        | Reason::WorkspaceNotFound
        | Reason::DeploymentNotFound
        | Reason::AssetNotFound
        | Reason::PlanNotFound
        | Reason::RunNotFound
        | Reason::TaskNotFound
        | Reason::AttemptUnknown
        | Reason::MaterializationNotFound
        | Reason::ArtifactNotFound
        | Reason::WorkerNotFound
        | Reason::ScheduleNotFound
        | Reason::SensorNotFound
        | Reason::BackfillNotFound
        | Reason::PoolNotFound
        | Reason::BudgetNotFound
        | Reason::ApiKeyNotFound
        | Reason::RoleNotFound
        | Reason::RoleBindingNotFound
        | Reason::ProjectionNotFound
        | Reason::RebuildNotFound
        | Reason::MessageNotFound
        | Reason::EventNotFound
        | Reason::DispatchPauseNotFound => Code::NotFound,
        Reason::SelectionEmpty
        | Reason::InvalidState
        | Reason::InUse
        | Reason::StaleAttempt
        | Reason::AlreadyStarted
        | Reason::AttemptCancelled
        | Reason::OutcomeConflict
        | Reason::OutputNotCommitted
        | Reason::HeartbeatRecent
        | Reason::RebuildRunning => Code::FailedPrecondition,
        Reason::AlreadyExists | Reason::RunKeyConflict => Code::AlreadyExists,
        Reason::VersionConflict => Code::Aborted,
    }
}

/// A refused call: the reason, a sentence, and details that help the caller.
#[derive(Debug, Clone)]
pub struct Error(Box<Refusal>);

// Boxed, because it is part of every `Result` and is rare.
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

    /// The error for a request whose `field` is wrong.
    pub fn bad_field(field: impl Into<String>, sentence: impl Into<String>) -> Error {
        let (field, sentence) = (field.into(), sentence.into());
        Error::new(Reason::InvalidField, format!("{field}: {sentence}"))
            .and_bad_field(field, sentence)
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

    /// Adds a machine-readable detail; never a secret.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Error {
        self.0.metadata.insert(key.into(), value.into());
        self
    }

    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// The wrong fields, each with a description of the fault.
    pub fn violations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .violations
            .iter()
            .map(|(field, sentence)| (field.as_str(), sentence.as_str()))
    }

    /// The delay after which a retry may succeed.
    pub fn delay(&self) -> Option<Duration> {
        self.0.retry_after
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
        let facts = error
            .metadata
            .into_iter()
            .map(|(key, value)| (key, truncated(value, FACT_BYTES_MAX)));
        let facts: HashMap<String, String> = facts.collect();
        let mut details = ErrorDetails::with_error_info(name(error.reason), ERROR_DOMAIN, facts);
        for (field, sentence) in truncate_violations(error.violations) {
            details.add_bad_request_violation(field, sentence);
        }
        for (subject, sentence) in truncate_violations(error.quota) {
            details.add_quota_failure_violation(subject, sentence);
        }
        if error.retry_after.is_some() {
            details.set_retry_info(error.retry_after);
        }
        Status::with_error_details(
            code(error.reason),
            truncated(error.message, MESSAGE_BYTES_MAX),
            details,
        )
    }
}

/// A status is sent in headers, and clients accept 8 KiB of them: the message twice, the details in
/// base64.
const MESSAGE_BYTES_MAX: usize = 1024;
const VIOLATIONS_BYTES_MAX: usize = 2048;
/// Limits one violation, so that a violation that quotes a long value still names its field.
const VIOLATION_BYTES_MAX: usize = 512;
const FACT_BYTES_MAX: usize = 128;

/// Keeps the violations that fit and replaces the others by their number.
fn truncate_violations(violations: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut violations: Vec<(String, String)> = violations
        .into_iter()
        .map(|(field, sentence)| (field, truncated(sentence, VIOLATION_BYTES_MAX)))
        .collect();
    let mut bytes = 0;
    let fits = |(field, sentence): &(String, String)| {
        bytes += field.len() + sentence.len();
        bytes > VIOLATIONS_BYTES_MAX
    };
    if let Some(kept) = violations.iter().position(fits) {
        let left_out = violations.len() - kept;
        violations.truncate(kept);
        violations.push((String::new(), format!("and {left_out} more")));
    }
    violations
}

fn truncated(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
    text
}

/// Returns the reason in a status that a Servo service sent.
pub fn reason_of(status: &Status) -> Option<Reason> {
    let info = status
        .get_details_error_info()
        .filter(|info| info.domain == ERROR_DOMAIN)?;
    Reason::from_str_name(&format!("ERROR_REASON_{}", info.reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::code_name;

    /// Users read the comments, services answer by the table, so both must agree.
    #[test]
    fn every_reason_has_the_code_that_its_comment_names() {
        let list = servo_proto::descriptors()
            .get_enum_by_name("servo.v1.ErrorReason")
            .unwrap();
        let file = list.parent_file();
        let comments = file
            .file_descriptor_proto()
            .source_code_info
            .as_ref()
            .unwrap();
        for value in list.values().filter(|value| value.number() != 0) {
            let location = comments
                .location
                .iter()
                .find(|location| location.path == value.path())
                .unwrap();
            let reason = Reason::try_from(value.number()).unwrap();
            let expected = location
                .leading_comments()
                .trim()
                .split(':')
                .next()
                .unwrap();
            assert_eq!(code_name(code(reason)), expected, "{}", value.name());
        }
    }

    #[test]
    fn error_keeps_its_reason_and_details_in_a_status() {
        let error = Error::bad_field("run_id", "is not a run id")
            .and_bad_field("page_size", "is above 100")
            .over_quota("tenant:acme", "10 of 10 runs")
            .retry_after(Duration::from_millis(1500))
            .with("limit", "100");
        let status = Status::from(error);
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(reason_of(&status), Some(Reason::InvalidField));
        let details = status.get_error_details();
        assert_eq!(details.error_info().unwrap().metadata["limit"], "100");
        assert_eq!(
            details.bad_request().unwrap().field_violations[1].field,
            "page_size"
        );
        assert_eq!(
            details.quota_failure().unwrap().violations[0].subject,
            "tenant:acme"
        );
        assert_eq!(
            details.retry_info().unwrap().retry_delay,
            Some(Duration::from_millis(1500))
        );
        assert_eq!(reason_of(&Status::internal("no details")), None);
    }

    #[test]
    fn error_with_many_violations_fits_into_the_headers_of_every_client() {
        let sentence = "ö".repeat(50);
        let wrong = |error: Error, n: usize| {
            error.and_bad_field(format!("assets[{n}].name"), sentence.clone())
        };
        let long = "ö".repeat(5000);
        let first = Error::new(Reason::ManifestInvalid, &*long)
            .with("run_id", &*long)
            .and_bad_field("name", long);
        let error = (1..1000).fold(first, wrong);
        let headers = Status::from(error).into_http::<()>().into_parts().0.headers;
        let bytes: usize = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 32)
            .sum();
        assert!(bytes <= 8192, "{bytes} bytes");
        let status = Status::from_header_map(&headers).unwrap();
        assert!(status.get_error_details().error_info().unwrap().metadata["run_id"].len() < 256);
        let violations = status.get_details_bad_request().unwrap().field_violations;
        let left_out = violations
            .last()
            .unwrap()
            .description
            .strip_prefix("and ")
            .unwrap()
            .strip_suffix(" more")
            .unwrap();
        assert_eq!(
            violations[0].field, "name",
            "a long sentence is truncated, its field is not"
        );
        assert_eq!(
            violations.len() - 1 + left_out.parse::<usize>().unwrap(),
            1000
        );
    }
}
