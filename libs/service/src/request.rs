//! Reading the fields that many requests have.

use servo_mesh::{Error, Reason};
use servo_model::limits::{COMMENT_BYTES_MAX, REQUEST_ID_BYTES_MAX};
use servo_model::{TenantId, TenantScope, WorkspaceId};

pub fn tenant(text: &str) -> Result<TenantId, Error> {
    text.parse()
        .map_err(|error: servo_model::ids::IdError| Error::bad_field("tenant", error.to_string()))
}

/// The tenant of a request that may be for all tenants (`-`).
pub fn tenant_scope(text: &str) -> Result<TenantScope, Error> {
    text.parse()
        .map_err(|error: servo_model::ids::IdError| Error::bad_field("tenant", error.to_string()))
}

pub fn workspace(text: &str) -> Result<WorkspaceId, Error> {
    text.parse().map_err(|error: servo_model::ids::IdError| {
        Error::bad_field("workspace", error.to_string())
    })
}

/// The request id of a mutation, which every mutation needs.
pub fn required_request_id(text: &str) -> Result<(), Error> {
    if text.is_empty() {
        let sentence = "is missing; send an id of your own, so that a repeat has no second effect";
        return Err(
            Error::new(Reason::RequestIdRequired, format!("request_id {sentence}"))
                .and_bad_field("request_id", sentence),
        );
    }
    request_id(text)
}

/// A request id that may be left out.
pub fn request_id(text: &str) -> Result<(), Error> {
    plain("request_id", text, REQUEST_ID_BYTES_MAX)
}

/// The comment with which somebody explains what they do.
pub fn comment(text: &str) -> Result<(), Error> {
    if text.len() > COMMENT_BYTES_MAX || text.contains('\0') {
        return Err(Error::bad_field(
            "comment",
            format!("is longer than {COMMENT_BYTES_MAX} bytes or holds a NUL; shorten it"),
        ));
    }
    Ok(())
}

fn plain(field: &str, text: &str, bytes_max: usize) -> Result<(), Error> {
    if text.len() > bytes_max || text.chars().any(char::is_control) {
        return Err(Error::bad_field(
            field,
            format!("is longer than {bytes_max} bytes or holds control characters; shorten it"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_are_short_plain_texts() {
        let reason = |result: Result<(), Error>| result.err().map(|error| error.reason());
        assert_eq!(reason(required_request_id("retry-7")), None);
        assert_eq!(
            reason(required_request_id("")),
            Some(Reason::RequestIdRequired)
        );
        assert_eq!(reason(request_id("")), None);
        assert_eq!(reason(request_id(&"x".repeat(REQUEST_ID_BYTES_MAX))), None);
        for bad in [
            "x".repeat(REQUEST_ID_BYTES_MAX + 1),
            "a\0b".to_owned(),
            "a\nb".to_owned(),
        ] {
            assert_eq!(
                reason(request_id(&bad)),
                Some(Reason::InvalidField),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn comments_may_have_several_lines() {
        assert!(comment("first\nsecond").is_ok());
        assert!(comment(&"x".repeat(COMMENT_BYTES_MAX + 1)).is_err());
        assert!(comment("a\0b").is_err());
    }
}
