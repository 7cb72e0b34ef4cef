//! Errors over plain HTTP: problem details (RFC 9457) with the same reason, message and details as
//! over gRPC.

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Map, Value, json};
use tonic::body::Body;
use tonic::{Code, Status};

use crate::error::{Error, Reason, code, name};

pub const MEDIA_TYPE: &str = "application/problem+json";

/// Renders the error as an HTTP response.
pub fn response(error: Error) -> Response<Body> {
    response_as(status(error.reason()), error)
}

/// Renders the error with an HTTP status that has no gRPC code, such as method not allowed.
pub fn response_as(status: StatusCode, error: Error) -> Response<Body> {
    let mut response = Response::new(Body::new(http_body_util::Full::from(
        details(&error, status).to_string(),
    )));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    if let Some(delay) = error.delay() {
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    // The server reads it when it counts and logs the call.
    response.extensions_mut().insert(Status::from(error));
    response
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

/// Maps codes to the HTTP status that Google's APIs use, except that too large messages have their
/// own.
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
        // The caller is gone and does not read the response.
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
    async fn error_has_the_same_details_over_http_and_grpc() {
        let error =
            Error::bad_field("outcome", "is not given").retry_after(Duration::from_millis(1500));
        let response = response(error);
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert_eq!(response.headers()[CONTENT_TYPE], MEDIA_TYPE);
        assert_eq!(
            response.headers()[RETRY_AFTER],
            "2",
            "rounded up, because a retry must not come too early"
        );
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["reason"], "INVALID_FIELD");
        assert_eq!(body["status"], 400);
        assert_eq!(body["fieldViolations"][0]["field"], "outcome");
        assert_eq!(body["detail"], "outcome: is not given");
    }

    #[test]
    fn reasons_map_to_http_statuses() {
        assert_eq!(
            status(Reason::MessageTooLarge),
            StatusCode::PAYLOAD_TOO_LARGE
        );
        assert_eq!(status(Reason::SignatureExpired), StatusCode::UNAUTHORIZED);
        assert_eq!(status(Reason::Overloaded), StatusCode::TOO_MANY_REQUESTS);
    }
}
