//! Refusals over plain HTTP: problem details (RFC 9457) with the same reason, sentence and help as over gRPC.

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Map, Value, json};
use tonic::body::Body;
use tonic::{Code, Status};

use crate::error::{Error, Reason, code, name};

pub const MEDIA_TYPE: &str = "application/problem+json";

/// The refusal as an answer.
pub fn response(error: Error) -> Response<Body> {
    response_as(status(error.reason()), error)
}

/// The refusal under a status of HTTP's own, such as a method that is not allowed.
pub fn response_as(status: StatusCode, error: Error) -> Response<Body> {
    let mut answer = Response::new(Body::new(http_body_util::Full::from(
        details(&error, status).to_string(),
    )));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    if let Some(delay) = error.delay() {
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        answer
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    // For whoever counts and logs calls on their way out.
    answer.extensions_mut().insert(Status::from(error));
    answer
}

fn details(error: &Error, status: StatusCode) -> Value {
    let reason = name(error.reason());
    let mut details = Map::new();
    details.insert(
        "type".to_owned(),
        format!("urn:servo:error:{reason}").into(),
    );
    details.insert(
        "title".to_owned(),
        reason.to_ascii_lowercase().replace('_', " ").into(),
    );
    details.insert("status".to_owned(), status.as_u16().into());
    details.insert("detail".to_owned(), error.to_string().into());
    details.insert("reason".to_owned(), reason.into());
    let violations: Vec<Value> = error
        .violations()
        .map(|(field, sentence)| json!({"field": field, "description": sentence}))
        .collect();
    if !violations.is_empty() {
        details.insert("fieldViolations".to_owned(), violations.into());
    }
    Value::Object(details)
}

/// The status codes that Google's APIs answer, and one of its own for what is too large.
pub fn status(reason: Reason) -> StatusCode {
    if reason == Reason::MessageTooLarge {
        return StatusCode::PAYLOAD_TOO_LARGE;
    }
    match code(reason) {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
            StatusCode::BAD_REQUEST
        }
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        // The caller is gone: nobody reads it.
        Code::Cancelled => StatusCode::BAD_REQUEST,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_refusal_says_over_http_what_it_says_over_grpc() {
        let error =
            Error::bad_field("outcome", "is not given").retry_after(Duration::from_millis(1500));
        let answer = response(error);
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        assert_eq!(answer.headers()[CONTENT_TYPE], MEDIA_TYPE);
        assert_eq!(
            answer.headers()[RETRY_AFTER],
            "2",
            "rounded up, or it would come too early"
        );
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let told: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(told["reason"], "INVALID_FIELD");
        assert_eq!(told["status"], 400);
        assert_eq!(told["fieldViolations"][0]["field"], "outcome");
        assert_eq!(told["detail"], "outcome: is not given");
    }

    #[test]
    fn what_is_too_large_says_so() {
        assert_eq!(
            status(Reason::MessageTooLarge),
            StatusCode::PAYLOAD_TOO_LARGE
        );
        assert_eq!(status(Reason::SignatureExpired), StatusCode::UNAUTHORIZED);
        assert_eq!(status(Reason::Overloaded), StatusCode::TOO_MANY_REQUESTS);
    }
}
