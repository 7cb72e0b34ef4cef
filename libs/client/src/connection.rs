//! The transport under the generated clients: credentials, deadline, request id, retries.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Full};
use servo_proto::access;
use tokio::time::{Instant, timeout_at};
use tonic::body::Body;
use tonic::transport::Channel;
use tonic::{Code, Status, TimeoutExpired};
use tower::{Service, ServiceExt};

use crate::request_id;
use crate::token::TokenSource;

/// The deadline of a call that sets none.
const DEADLINE: Duration = Duration::from_secs(30);
const TIMEOUT: &str = "grpc-timeout";
const TRIES_MAX: u32 = 5;
const DELAY_MIN: Duration = Duration::from_millis(50);
const DELAY_MAX: Duration = Duration::from_secs(2);

/// A connection to one server, for generated clients. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Connection {
    channel: Channel,
    authorization: Authorization,
}

/// The source of the `authorization` header.
#[derive(Debug, Clone)]
pub(crate) enum Authorization {
    /// No header: the client certificate identifies the caller.
    None,
    Fixed(HeaderValue),
    Fresh(TokenSource),
}

impl Authorization {
    fn header(&self) -> Result<Option<HeaderValue>, Status> {
        match self {
            Authorization::None => Ok(None),
            Authorization::Fixed(value) => Ok(Some(value.clone())),
            Authorization::Fresh(source) => source.bearer().map(Some),
        }
    }
}

impl Connection {
    pub(crate) fn new(channel: Channel, authorization: Authorization) -> Connection {
        Connection {
            channel,
            authorization,
        }
    }
}

impl Service<Request<Body>> for Connection {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        match self.authorization.header() {
            Ok(Some(value)) => drop(request.headers_mut().insert(header::AUTHORIZATION, value)),
            Ok(None) => {}
            Err(refusal) => return Box::pin(std::future::ready(Err(refusal))),
        }
        let channel = self.channel.clone();
        let method = access::method_of(request.uri().path());
        match method {
            Some(method) if !method.client_streaming && !method.server_streaming => {
                Box::pin(call_with_retries(channel, request, method.idempotent))
            }
            _ => Box::pin(send(channel, request)),
        }
    }
}

type Outcome = Result<Response<Body>, Status>;

/// A unary call. It is retried within the deadline while the server is unavailable, if a repeat is
/// harmless: because the method is idempotent, or because the request has a request id.
async fn call_with_retries(channel: Channel, request: Request<Body>, idempotent: bool) -> Outcome {
    let (mut head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let (body, has_id) = request_id::ensure(head.uri.path(), body);
    let left = head
        .headers
        .get(TIMEOUT)
        .and_then(|value| parse_timeout(value.to_str().ok()?));
    let deadline = Instant::now() + left.unwrap_or(DEADLINE);
    let (mut delay, mut refusal) = (DELAY_MIN, None);
    for tries in 1.. {
        set_timeout(&mut head.headers, deadline);
        let sent = send(channel.clone(), copy_request(&head, &body));
        // A timeout of our own, because the channel counts only from the moment it is connected.
        let outcome = timeout_at(deadline, sent)
            .await
            .unwrap_or_else(|_| Err(deadline_exceeded()));
        let unavailable = code_of(&outcome) == Some(Code::Unavailable);
        let pause = delay.mul_f64(rand::random_range(0.5..1.0));
        let time_left = deadline.saturating_duration_since(Instant::now());
        if !unavailable || !(idempotent || has_id) || tries == TRIES_MAX || time_left <= pause {
            return prefer_refusal(refusal, outcome);
        }
        refusal = Some(outcome);
        tokio::time::sleep(pause).await;
        delay = (delay * 2).min(DELAY_MAX);
    }
    Err(Status::internal("tries are counted from one"))
}

/// Returns the refusal that caused the retry rather than a timeout of the retry, because it is more
/// informative.
fn prefer_refusal(refusal: Option<Outcome>, outcome: Outcome) -> Outcome {
    match refusal {
        Some(refusal) if code_of(&outcome) == Some(Code::DeadlineExceeded) => refusal,
        _ => outcome,
    }
}

async fn send(mut channel: Channel, request: Request<Body>) -> Result<Response<Body>, Status> {
    let unreachable = |error: tonic::transport::Error| {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            if error.is::<TimeoutExpired>() {
                return deadline_exceeded();
            }
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Status::unavailable(text)
    };
    let channel = channel.ready().await.map_err(unreachable)?;
    channel.call(request).await.map_err(unreachable)
}

fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the server did not respond in time")
}

fn copy_request(head: &http::request::Parts, body: &Bytes) -> Request<Body> {
    Request::from_parts(head.clone(), Body::new(Full::new(body.clone())))
}

fn code_of(outcome: &Outcome) -> Option<Code> {
    match outcome {
        Ok(response) => status_of(response),
        Err(status) => Some(status.code()),
    }
}

fn status_of(response: &Response<Body>) -> Option<Code> {
    Status::from_header_map(response.headers()).map(|status| status.code())
}

fn set_timeout(headers: &mut http::HeaderMap, deadline: Instant) {
    let left = deadline
        .saturating_duration_since(Instant::now())
        .as_millis();
    if let Ok(value) = HeaderValue::try_from(format!("{}m", left.min(99_999_999))) {
        headers.insert(TIMEOUT, value);
    }
}

/// Parses a number of at most eight digits and a unit.
fn parse_timeout(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number.checked_mul(3600)?),
        "M" => Duration::from_secs(number.checked_mul(60)?),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal() -> Outcome {
        Err(Status::unavailable("Postgres is unavailable"))
    }

    fn answered() -> Outcome {
        Ok(Status::not_found("no such run").into_http())
    }

    #[test]
    fn timed_out_retry_returns_the_refusal_that_caused_it() {
        let code = |refusal, outcome| code_of(&prefer_refusal(refusal, outcome));
        assert_eq!(
            code(Some(refusal()), Err(deadline_exceeded())),
            Some(Code::Unavailable)
        );
        assert_eq!(
            code(None, Err(deadline_exceeded())),
            Some(Code::DeadlineExceeded)
        );
        assert_eq!(code(Some(refusal()), answered()), Some(Code::NotFound));
    }
}
