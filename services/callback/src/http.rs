//! The presigned calls over plain HTTPS, for workers without gRPC: a `POST` to the envelope's path,
//! with the request as JSON and the renewal as a header if needed. The same functions serve both
//! protocols.

use std::convert::Infallible;

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use prost::Message;
use servo_mesh::{Error, Handler, Reason, problem};
use servo_model::presign::{CallbackPath, CallbackVerb};
use servo_proto::json;
use tonic::body::Body;
use tower::service_fn;
use tower::util::BoxCloneSyncService;

use crate::core::PresentedPaths;
use crate::rpc::Callback;
use crate::rpc::append_logs::append_logs;
use crate::rpc::finish_attempt::finish_attempt;
use crate::rpc::heartbeat::heartbeat;
use crate::rpc::start_attempt::start_attempt;
use crate::rpc::support::presigned::{PresignedRequest, RENEWAL, verify_path};

const JSON: &str = "application/json";

/// Returns a handler that answers presigned paths only.
pub(crate) fn handler(callback: Callback) -> Handler {
    BoxCloneSyncService::new(service_fn(move |request| {
        let callback = callback.clone();
        async move {
            let response = answer(&callback, request).await;
            Ok::<_, Infallible>(response.unwrap_or_else(Refusal::into_response))
        }
    }))
}

/// An error of the API, or one with a status that only HTTP has.
enum Refusal {
    Error(Error),
    Http(StatusCode, Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Error(error)
    }
}

impl Refusal {
    fn into_response(self) -> Response<Body> {
        let (status, error) = match self {
            Refusal::Error(error) => return problem::response(error),
            Refusal::Http(status, error) => (status, error),
        };
        let mut response = problem::response_as(status, error);
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static(CallbackPath::METHOD));
        }
        response
    }
}

async fn answer(callback: &Callback, request: Request<Body>) -> Result<Response<Body>, Refusal> {
    let (head, body) = request.into_parts();
    let path: CallbackPath = head
        .uri
        .path()
        .parse()
        .map_err(|_| unknown_path(head.uri.path()))?;
    if head.method != Method::POST {
        let message = format!(
            "{} is not allowed; presigned paths accept POST only",
            head.method
        );
        return Err(Refusal::Http(
            StatusCode::METHOD_NOT_ALLOWED,
            Error::new(Reason::InvalidField, message),
        ));
    }
    let media = header(&head.headers, CONTENT_TYPE.as_str());
    if media.split(';').next().map(str::trim) != Some(JSON) {
        let message = format!("content-type is `{media}`; send {JSON}");
        return Err(Refusal::Http(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Error::new(Reason::InvalidField, message),
        ));
    }
    let presigned = head.uri.path_and_query().map_or("", |whole| whole.as_str());
    let presented = PresentedPaths {
        presigned,
        renewal: header(&head.headers, RENEWAL),
    };
    // Verified before the body is read, so that an unsigned call cannot make us buffer one.
    verify_path(callback, presented, path.verb)?;
    let body = body.collect().await.map_err(|_| too_large())?.to_bytes();
    call(callback, &path, presented, &body).await
}

/// Returns the header's value; empty if there is none.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

async fn call(
    callback: &Callback,
    path: &CallbackPath,
    presented: PresentedPaths<'_>,
    body: &[u8],
) -> Result<Response<Body>, Refusal> {
    match path.verb {
        CallbackVerb::Start => {
            let request = read(path, body)?;
            let answer = start_attempt(callback, presented, request).await?;
            json_response("StartAttemptResponse", &answer)
        }
        CallbackVerb::Heartbeat => {
            let answer = heartbeat(callback, presented, read(path, body)?).await?;
            json_response("HeartbeatResponse", &answer)
        }
        CallbackVerb::Logs => {
            let answer = append_logs(callback, presented, read(path, body)?).await?;
            json_response("AppendLogsResponse", &answer)
        }
        CallbackVerb::Finished => {
            let request = read(path, body)?;
            let answer = finish_attempt(callback, presented, request).await?;
            json_response("FinishAttemptResponse", &answer)
        }
    }
}

/// Decodes the body and fills in the names that only the path contains. Names in the body are kept;
/// the signature is then verified against them.
fn read<R: PresignedRequest>(path: &CallbackPath, body: &[u8]) -> Result<R, Error> {
    let mut request: R = json::from_json(R::NAME, body)
        .map_err(|error| Error::bad_field("body", error.to_string()))?;
    let names = [
        path.tenant.to_string(),
        path.workspace.to_string(),
        path.run.to_string(),
        path.attempt.to_string(),
    ];
    for (field, name) in request.names_mut().into_iter().zip(names) {
        if field.is_empty() {
            *field = name;
        }
    }
    Ok(request)
}

fn json_response<M: Message>(message: &str, answer: &M) -> Result<Response<Body>, Refusal> {
    let text = json::to_json(message, answer)
        .map_err(|error| Error::new(Reason::Internal, error.to_string()))?;
    let mut response = Response::new(Body::new(Full::from(text)));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    Ok(response)
}

fn too_large() -> Error {
    Error::new(
        Reason::MessageTooLarge,
        "the body is incomplete, or larger than server.max_message allows",
    )
}

fn unknown_path(path: &str) -> Refusal {
    let excerpt: String = path.chars().take(128).collect();
    let message = format!("{excerpt} is not a presigned path; send the envelope's paths unchanged");
    Refusal::Http(
        StatusCode::NOT_FOUND,
        Error::new(Reason::NotImplemented, message),
    )
}
