//! Calls to other services. A [`Peer`] is what generated clients are made of: it connects when needed,
//! insists on the server's identity, passes deadline and trace on, and repeats what may be repeated.

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

use self::connect::{Target, Trouble};
use self::link::{Failure, Fate, Link};
use self::retry::Retries;
use crate::config::check::{MESSAGE_BYTES_MAX, peer_uri};
use crate::error::{Error, Reason};
use crate::mesh::Core;
use crate::scope;
use crate::server::deadline::{self, GRPC_TIMEOUT};
use crate::spans;
use crate::trace::TraceContext;

/// How many closing connections in a row one request may meet.
const NOT_TAKEN_MAX: usize = 3;

/// One message of the largest size with its prefix: a call that is kept has no second one.
const KEPT_BYTES_MAX: usize = MESSAGE_BYTES_MAX + 5;

/// The way to another service; cheap to clone, all clones share one connection.
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
    pub(crate) fn new(core: Arc<Core>, service: Service, address: Uri) -> Peer {
        let peers = &core.common.peers;
        let target = Target {
            service,
            address,
            own_identity: core.service.spiffe_id(),
            tls: core.tls.clone(),
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
            "`{address}` is no address of the {service}; https:// with a host and a port is"
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
        // Whoever is called makes a span of its own below ours, and begins a trace where we have none.
        let trace = spans::current().or_else(scope::current_trace);
        Box::pin(async move {
            let call = shared.call(request, deadline, trace);
            match deadline {
                Some(deadline) => tokio::time::timeout_at(deadline, call)
                    .await
                    .unwrap_or_else(|_| Err(shared.late())),
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
                .map_err(|failure| status(failure.trouble));
        }
        let idempotent = method.is_some_and(|method| method.idempotent);
        self.call_repeatedly(Kept::of(request).await?, deadline, idempotent)
            .await
    }

    /// A request that cannot have been served may be sent again whatever it does; one that may have been only
    /// if a repeat does no harm.
    async fn call_repeatedly(
        &self,
        kept: Kept,
        deadline: Option<Instant>,
        idempotent: bool,
    ) -> Result<Response<Body>, Status> {
        self.retries.first_try();
        let mut tries = 0;
        loop {
            tries += 1;
            let outcome = self.send_until_taken(&kept, deadline).await;
            let repeatable = match &outcome {
                Ok(response) => idempotent && is_unavailable(response),
                Err(failure) => idempotent || failure.fate != Fate::Unknown,
            };
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let delay = repeatable
                .then(|| self.retries.next_try(tries, left, rand::random()))
                .flatten();
            let Some(delay) = delay else {
                return outcome.map_err(|failure| status(failure.trouble));
            };
            tokio::time::sleep(delay).await;
        }
    }

    /// A peer that renews its certificates or goes away closes its connections in good order. A request that
    /// met one of them is sent again at once; that is no retry, since nobody has taken it yet.
    async fn send_until_taken(
        &self,
        kept: &Kept,
        deadline: Option<Instant>,
    ) -> Result<Response<Body>, Failure> {
        let mut outcome = self.link.send(kept.request(deadline)).await;
        for _ in 0..NOT_TAKEN_MAX {
            match &outcome {
                Err(failure) if failure.fate == Fate::NotTaken => {
                    outcome = self.link.send(kept.request(deadline)).await;
                }
                _ => break,
            }
        }
        outcome
    }

    /// The earliest of what the call asks for and what the call being served has left. A call that inherits
    /// nothing and ends with one answer gets the configured deadline.
    fn deadline(&self, request: &Request<Body>) -> Option<Instant> {
        let asked = request
            .headers()
            .get(GRPC_TIMEOUT)
            .and_then(|value| deadline::parse(value.to_str().ok()?));
        let earliest = [asked, scope::time_left()].into_iter().flatten().min();
        let streams =
            access::method_of(request.uri().path()).is_some_and(|method| method.server_streaming);
        let timeout = earliest.or((!streams).then_some(self.default_deadline))?;
        Instant::now().checked_add(timeout)
    }

    fn late(&self) -> Status {
        Error::new(
            Reason::DeadlineExceeded,
            format!("the {} did not answer before the deadline", self.service),
        )
        .into()
    }
}

/// A request that can be sent more than once.
struct Kept {
    head: http::request::Parts,
    body: Bytes,
}

impl Kept {
    async fn of(request: Request<Body>) -> Result<Kept, Status> {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, KEPT_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| too_large(&*error))?;
        Ok(Kept {
            head,
            body: body.to_bytes(),
        })
    }

    fn request(&self, deadline: Option<Instant>) -> Request<Body> {
        let mut request =
            Request::from_parts(self.head.clone(), Body::new(Full::new(self.body.clone())));
        set_timeout(&mut request, deadline);
        request
    }
}

/// Tells the peer what is left, which shrinks from try to try.
fn set_timeout(request: &mut Request<Body>, deadline: Option<Instant>) {
    let left = deadline.map(|at| deadline::format(at.saturating_duration_since(Instant::now())));
    match left.and_then(|left| HeaderValue::try_from(left).ok()) {
        Some(left) => request.headers_mut().insert(GRPC_TIMEOUT, left),
        None => request.headers_mut().remove(GRPC_TIMEOUT),
    };
}

fn too_large(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Status {
    if error.is::<LengthLimitError>() {
        let message = format!("the request has more than {KEPT_BYTES_MAX} bytes");
        return Error::new(Reason::MessageTooLarge, message).into();
    }
    let broken = || {
        Error::new(
            Reason::CallerCancelled,
            format!("the request broke off: {error}"),
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

fn status(trouble: Trouble) -> Status {
    Error::new(Reason::DependencyUnavailable, trouble.to_string()).into()
}
