//! The presigned calls over plain HTTPS, for workers that speak no gRPC: `POST` to the envelope's path as it is, with the
//! request as JSON, and a renewal as a header where one is needed. What happens then is what happens over gRPC.

use std::convert::Infallible;

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use prost::Message;
use servo_mesh::{Error, Handler, Reason, problem};
use servo_model::presign::{CallbackPath, CallbackVerb};
use servo_proto::json;
use servo_proto::v1;
use tonic::body::Body;
use tower::service_fn;
use tower::util::BoxCloneSyncService;

use crate::core::Shown;
use crate::rpc::{Callback, RENEWAL, current_trace};

const JSON: &str = "application/json";

/// Answers every presigned path, and nothing else.
pub(crate) fn handler(callback: Callback) -> Handler {
    BoxCloneSyncService::new(service_fn(move |request| {
        let callback = callback.clone();
        async move {
            Ok::<_, Infallible>(
                answer(&callback, request)
                    .await
                    .unwrap_or_else(Refusal::into_response),
            )
        }
    }))
}

/// A refusal of ours, or one that only HTTP knows.
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
        .map_err(|_| unknown(head.uri.path()))?;
    if head.method != Method::POST {
        let told = format!(
            "{} is not allowed here; presigned paths take POST",
            head.method
        );
        return Err(Refusal::Http(
            StatusCode::METHOD_NOT_ALLOWED,
            Error::new(Reason::InvalidField, told),
        ));
    }
    let media = text(&head.headers, CONTENT_TYPE.as_str());
    if media.split(';').next().map(str::trim) != Some(JSON) {
        let told = format!("content-type is `{media}`; send {JSON}");
        return Err(Refusal::Http(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Error::new(Reason::InvalidField, told),
        ));
    }
    let presigned = head.uri.path_and_query().map_or("", |whole| whole.as_str());
    let shown = Shown {
        presigned,
        renewal: text(&head.headers, RENEWAL),
    };
    // Before the body is read: who cannot show a signature gets nothing gathered for him.
    callback.is_signed(shown, path.verb)?;
    let body = body.collect().await.map_err(|_| too_large())?.to_bytes();
    deed(callback, &path, shown, &body).await
}

/// The header's value; empty without one.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

async fn deed(
    callback: &Callback,
    path: &CallbackPath,
    shown: Shown<'_>,
    body: &[u8],
) -> Result<Response<Body>, Refusal> {
    let trace = current_trace();
    match path.verb {
        CallbackVerb::Start => {
            let mut asked: v1::StartAttemptRequest = read("StartAttemptRequest", body)?;
            fill(
                path,
                [
                    &mut asked.tenant,
                    &mut asked.workspace,
                    &mut asked.run_id,
                    &mut asked.attempt_id,
                ],
            );
            written(
                "StartAttemptResponse",
                &callback.start(shown, asked, trace).await?,
            )
        }
        CallbackVerb::Heartbeat => {
            let mut asked: v1::HeartbeatRequest = read("HeartbeatRequest", body)?;
            fill(
                path,
                [
                    &mut asked.tenant,
                    &mut asked.workspace,
                    &mut asked.run_id,
                    &mut asked.attempt_id,
                ],
            );
            written("HeartbeatResponse", &callback.beat(shown, asked).await?)
        }
        CallbackVerb::Logs => {
            let mut asked: v1::AppendLogsRequest = read("AppendLogsRequest", body)?;
            fill(
                path,
                [
                    &mut asked.tenant,
                    &mut asked.workspace,
                    &mut asked.run_id,
                    &mut asked.attempt_id,
                ],
            );
            written("AppendLogsResponse", &callback.append(shown, asked).await?)
        }
        CallbackVerb::Finished => {
            let mut asked: v1::FinishAttemptRequest = read("FinishAttemptRequest", body)?;
            fill(
                path,
                [
                    &mut asked.tenant,
                    &mut asked.workspace,
                    &mut asked.run_id,
                    &mut asked.attempt_id,
                ],
            );
            written(
                "FinishAttemptResponse",
                &callback.finish(shown, asked, trace).await?,
            )
        }
    }
}

/// What the path says need not be said again; where the body says otherwise, the signature decides.
fn fill(path: &CallbackPath, fields: [&mut String; 4]) {
    let said = [
        path.tenant.to_string(),
        path.workspace.to_string(),
        path.run.to_string(),
        path.attempt.to_string(),
    ];
    for (field, said) in fields.into_iter().zip(said) {
        if field.is_empty() {
            *field = said;
        }
    }
}

fn read<M: Message + Default>(message: &str, body: &[u8]) -> Result<M, Error> {
    json::from_json(message, body).map_err(|bad| Error::bad_field("body", bad.to_string()))
}

fn written<M: Message>(message: &str, answer: &M) -> Result<Response<Body>, Refusal> {
    let text = json::to_json(message, answer)
        .map_err(|bad| Error::new(Reason::Internal, bad.to_string()))?;
    let mut response = Response::new(Body::new(Full::from(text)));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    Ok(response)
}

fn too_large() -> Error {
    Error::new(
        Reason::MessageTooLarge,
        "the body did not arrive whole, or is larger than server.max_message allows",
    )
}

fn unknown(path: &str) -> Refusal {
    let shown: String = path.chars().take(128).collect();
    let told = format!("{shown} is no presigned path; send the envelope's paths as they are");
    Refusal::Http(
        StatusCode::NOT_FOUND,
        Error::new(Reason::NotImplemented, told),
    )
}
