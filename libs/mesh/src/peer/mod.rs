//! Calls to other services. A [`Peer`] is the transport of generated clients: it connects when
//! needed, verifies the server's identity, sends deadline and trace, and retries calls that may be
//! repeated.

mod connect;
mod link;
mod retry;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use servo_model::Service;
use servo_proto::access;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::{Code, Status};

use self::connect::{ConnectError, Target};
use self::link::{Delivery, Failure, Link};
use self::retry::Retries;
use crate::call_context;
use crate::config::check::{MESSAGE_BYTES_MAX, peer_uri};
use crate::error::{Error, Reason};
use crate::runtime::Runtime;
use crate::server::deadline::{self, GRPC_TIMEOUT};
use crate::spans;
use crate::trace::TraceContext;

/// How many closing connections in a row one request may encounter.
const CLOSING_CONNECTIONS_MAX: usize = 3;

/// One message of the largest size with its prefix, because a replayable call has only one message.
const REPLAYABLE_BYTES_MAX: usize = MESSAGE_BYTES_MAX + 5;

/// A client of another service; cheap to clone, all clones share one connection.
#[derive(Clone)]
pub struct Peer {
    shared: Arc<Shared>,
}

struct Shared {
    service: Service,
    link: Link,
    retries: Retries,
    default_deadline: Duration,
}

impl Peer {
    pub(crate) fn new(runtime: Arc<Runtime>, service: Service, address: Uri) -> Peer {
        let peers = &runtime.common.peers;
        let target = Target {
            service,
            address,
            own_identity: runtime.service.spiffe_id(),
            tls: runtime.tls.clone(),
            timeout: peers.connect_timeout,
        };
        let shared = Shared {
            service,
            retries: Retries::new(peers.max_retries),
            default_deadline: peers.deadline,
            link: Link::new(target, peers.clone()),
        };
        Peer {
            shared: Arc::new(shared),
        }
    }
}

pub(crate) fn parse_address(service: Service, address: &str) -> Result<Uri, Error> {
    let wrong = || {
        let message = format!(
            "`{address}` is not a valid address of the {service}; use https:// with a host and a port"
        );
        Error::new(Reason::InvalidField, message)
    };
    peer_uri(address).ok_or_else(wrong)
}

impl tower::Service<Request<Body>> for Peer {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (shared, deadline) = (self.shared.clone(), self.shared.deadline(&request));
        // The server creates its own span below ours, or begins a trace when we have none.
        let trace = spans::current().or_else(call_context::current_trace);
        Box::pin(async move {
            let call = shared.call(request, deadline, trace);
            match deadline {
                Some(deadline) => tokio::time::timeout_at(deadline, call)
                    .await
                    .unwrap_or_else(|_| Err(shared.deadline_exceeded())),
                None => call.await,
            }
        })
    }
}

impl Shared {
    async fn call(
        &self,
        mut request: Request<Body>,
        deadline: Option<Instant>,
        trace: Option<TraceContext>,
    ) -> Result<Response<Body>, Status> {
        if let Some(trace) = trace {
            trace.inject(request.headers_mut());
        }
        let method = access::method_of(request.uri().path());
        if method.is_none_or(|method| method.client_streaming) {
            set_timeout(&mut request, deadline);
            return self
                .link
                .send(request)
                .await
                .map_err(|failure| status(failure.error));
        }
        let idempotent = method.is_some_and(|method| method.idempotent);
        self.call_with_retries(ReplayableRequest::of(request).await?, deadline, idempotent)
            .await
    }

    /// A request that cannot have been processed may always be sent again; one that may have been
    /// processed only if it is idempotent.
    async fn call_with_retries(
        &self,
        request: ReplayableRequest,
        deadline: Option<Instant>,
        idempotent: bool,
    ) -> Result<Response<Body>, Status> {
        self.retries.first_try();
        let mut tries = 0;
        loop {
            tries += 1;
            let outcome = self.send_until_accepted(&request, deadline).await;
            let repeatable = match &outcome {
                Ok(response) => idempotent && is_unavailable(response),
                Err(failure) => idempotent || failure.delivery != Delivery::Unknown,
            };
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let delay = repeatable
                .then(|| self.retries.next_try(tries, left, rand::random()))
                .flatten();
            let Some(delay) = delay else {
                return outcome.map_err(|failure| status(failure.error));
            };
            tokio::time::sleep(delay).await;
        }
    }

    /// A peer that renews its certificates or stops closes its connections cleanly. A request that
    /// meets such a connection is sent again immediately; this does not count as a retry, because
    /// the server has not accepted it.
    async fn send_until_accepted(
        &self,
        request: &ReplayableRequest,
        deadline: Option<Instant>,
    ) -> Result<Response<Body>, Failure> {
        let mut outcome = self.link.send(request.to_http(deadline)).await;
        for _ in 0..CLOSING_CONNECTIONS_MAX {
            match &outcome {
                Err(failure) if failure.delivery == Delivery::NotAccepted => {
                    outcome = self.link.send(request.to_http(deadline)).await;
                }
                _ => break,
            }
        }
        outcome
    }

    /// The earlier of the call's own deadline and the deadline of the call being served. A unary
    /// call without either gets the configured deadline.
    fn deadline(&self, request: &Request<Body>) -> Option<Instant> {
        let requested = request
            .headers()
            .get(GRPC_TIMEOUT)
            .and_then(|value| deadline::parse(value.to_str().ok()?));
        let earliest = [requested, call_context::time_left()]
            .into_iter()
            .flatten()
            .min();
        let streams =
            access::method_of(request.uri().path()).is_some_and(|method| method.server_streaming);
        let timeout = earliest.or((!streams).then_some(self.default_deadline))?;
        Instant::now().checked_add(timeout)
    }

    fn deadline_exceeded(&self) -> Status {
        Error::new(
            Reason::DeadlineExceeded,
            format!("the {} did not answer before the deadline", self.service),
        )
        .into()
    }
}

/// A request that can be sent more than once.
struct ReplayableRequest {
    head: http::request::Parts,
    body: Bytes,
}

impl ReplayableRequest {
    async fn of(request: Request<Body>) -> Result<ReplayableRequest, Status> {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, REPLAYABLE_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| body_error(&*error))?;
        Ok(ReplayableRequest {
            head,
            body: body.to_bytes(),
        })
    }

    fn to_http(&self, deadline: Option<Instant>) -> Request<Body> {
        let mut request =
            Request::from_parts(self.head.clone(), Body::new(Full::new(self.body.clone())));
        set_timeout(&mut request, deadline);
        request
    }
}

/// Sends the remaining time, which shrinks with every try.
fn set_timeout(request: &mut Request<Body>, deadline: Option<Instant>) {
    let left = deadline.map(|at| deadline::format(at.saturating_duration_since(Instant::now())));
    match left.and_then(|left| HeaderValue::try_from(left).ok()) {
        Some(left) => request.headers_mut().insert(GRPC_TIMEOUT, left),
        None => request.headers_mut().remove(GRPC_TIMEOUT),
    };
}

fn body_error(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Status {
    if error.is::<LengthLimitError>() {
        let message = format!("the request has more than {REPLAYABLE_BYTES_MAX} bytes");
        return Error::new(Reason::MessageTooLarge, message).into();
    }
    let broken = || {
        Error::new(
            Reason::CallerCancelled,
            format!("the request body ended early: {error}"),
        )
        .into()
    };
    error
        .downcast_ref::<Status>()
        .cloned()
        .unwrap_or_else(broken)
}

fn is_unavailable(response: &Response<Body>) -> bool {
    Status::from_header_map(response.headers())
        .is_some_and(|status| status.code() == Code::Unavailable)
}

fn status(error: ConnectError) -> Status {
    Error::new(Reason::DependencyUnavailable, error.to_string()).into()
}
