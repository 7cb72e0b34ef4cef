//! The steps that every incoming call passes, from its headers to its response.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::Limited;
use hyper::body::Incoming;
use servo_model::Service;
use servo_proto::scope::{self, ScopeKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::ServiceExt;
use tracing::field::Empty;
use tracing::{Instrument, Span, info_span};

use super::access::authorise;
use super::body::{InFlightCall, StreamLimits, track};
use super::deadline;
use super::messages::{CheckedMessages, ScopeCheck};
use super::routes::{Handler, Routes, Target};
use crate::call_context::CallContext;
use crate::caller::{self, Caller};
use crate::error::{Error, Reason};
use crate::health::waiting_for;
use crate::metrics::ShedLabels;
use crate::problem;
use crate::runtime::Runtime;
use crate::spans;
use crate::tls::{Exposure, PeerIdentity};
use crate::trace::TraceContext;

/// The retry delay for callers that were refused because of load.
const RETRY_AFTER: Duration = Duration::from_millis(500);

pub(super) struct Pipeline {
    runtime: Arc<Runtime>,
    exposure: Exposure,
    routes: Routes,
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

impl Pipeline {
    pub(super) fn new(runtime: Arc<Runtime>, routes: Routes, exposure: Exposure) -> Pipeline {
        let semaphore = |count: u32| Arc::new(Semaphore::new(count as usize));
        let server = &runtime.common.server;
        Pipeline {
            requests: semaphore(server.max_requests),
            streams: semaphore(server.max_streams),
            runtime,
            exposure,
            routes,
        }
    }

    pub(super) async fn handle(
        self: Arc<Self>,
        peer: PeerIdentity,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let target = Target::of(request.uri().path());
        let callers_trace = TraceContext::extract(request.headers());
        let trace = callers_trace
            .as_ref()
            .map_or_else(TraceContext::root, TraceContext::child);
        let span = self.span(&peer, request.uri().path(), &trace);
        spans::set_context(&span, &trace, callers_trace);
        let mut call = InFlightCall {
            meter: self.runtime.metrics.begin(target.label()),
            span: span.clone(),
            permit: None,
        };
        let refuse = if is_grpc(request.headers()) {
            as_status
        } else {
            problem::response
        };
        let checked = span.in_scope(|| self.check(&peer, target, request, trace, refuse));
        let mut checked = match checked {
            Ok(checked) => checked,
            Err(error) => return Ok(track(refuse(error), call, None)),
        };
        call.permit = checked.permit.take();
        let (deadline, draining) = (
            checked.context.deadline,
            self.runtime.shutdown.drain_token(),
        );
        let limits = target
            .is_stream()
            .then_some(StreamLimits { deadline, draining });
        let response = checked.run().instrument(span).await;
        Ok(track(response, call, limits))
    }

    /// Every check before the handler runs, cheapest first.
    fn check(
        &self,
        peer: &PeerIdentity,
        target: Target,
        request: Request<Incoming>,
        trace: TraceContext,
        refuse: Refuse,
    ) -> Result<CheckedCall, Error> {
        let path = request.uri().path().to_owned();
        let handler = self
            .routes
            .handler(&path)
            .ok_or_else(|| unknown(&path, self.runtime.service))?;
        let caller = self.caller(peer, target, request.headers())?;
        self.check_ready(target)?;
        let deadline = self.deadline(target, request.headers())?;
        let permit = self.permit(target)?;
        let scope_check = caller
            .as_ref()
            .and_then(|caller| scope_check(caller, target));
        let max = self.runtime.common.server.max_message;
        let mut request = if is_grpc(request.headers()) {
            request.map(|body| Body::new(CheckedMessages::new(body, max, scope_check)))
        } else {
            request.map(|body| Body::new(Limited::new(body, max)))
        };
        caller::strip(request.headers_mut());
        request.extensions_mut().insert(peer.clone());
        if let Some(caller) = caller {
            record(&caller);
            request.extensions_mut().insert(caller);
        }
        Ok(CheckedCall {
            handler,
            request,
            permit,
            context: CallContext { deadline, trace },
            is_unary: !target.is_stream(),
            path,
            refuse,
        })
    }

    /// On the public exposure the handler authenticates the caller; health and reflection need no
    /// caller.
    fn caller(
        &self,
        peer: &PeerIdentity,
        target: Target,
        headers: &HeaderMap,
    ) -> Result<Option<Caller>, Error> {
        match target {
            Target::Method(method) if self.exposure == Exposure::Mesh => {
                authorise(method, peer, headers).map(Some)
            }
            Target::Method(_) | Target::BuiltIn => Ok(None),
            Target::Unknown if self.exposure == Exposure::Public => Ok(None),
            Target::Unknown => Err(unknown("this path", self.runtime.service)),
        }
    }

    fn check_ready(&self, target: Target) -> Result<(), Error> {
        if target.is_built_in() || self.runtime.readiness.was_ready() {
            return Ok(());
        }
        let reason = waiting_for(self.runtime.readiness.state());
        let message = format!("the {} is not ready: {reason}", self.runtime.service);
        Err(Error::new(Reason::NotReady, message).retry_after(RETRY_AFTER))
    }

    fn deadline(&self, target: Target, headers: &HeaderMap) -> Result<Option<Instant>, Error> {
        deadline::deadline(
            headers,
            target.wait(),
            self.exposure,
            self.runtime.common.server.max_deadline,
            Instant::now(),
        )
    }

    /// Takes a permit for the call. Calls are refused instead of queued, so that the caller can go
    /// elsewhere.
    fn permit(&self, target: Target) -> Result<Option<OwnedSemaphorePermit>, Error> {
        if target.is_built_in() {
            return Ok(None);
        }
        let (semaphore, limit) = if target.is_stream() {
            (&self.streams, "max_streams")
        } else {
            (&self.requests, "max_requests")
        };
        semaphore
            .clone()
            .try_acquire_owned()
            .map(Some)
            .map_err(|_| {
                self.runtime
                    .metrics
                    .shed
                    .get_or_create(&ShedLabels { limit })
                    .inc();
                let message = format!(
                    "the {} has too many calls in flight (server.{limit})",
                    self.runtime.service
                );
                Error::new(Reason::Overloaded, message).retry_after(RETRY_AFTER)
            })
    }

    fn span(&self, peer: &PeerIdentity, path: &str, trace: &TraceContext) -> Span {
        info_span!(
            "rpc",
            service = self.runtime.service.name(),
            method = path,
            %peer,
            trace_id = trace.trace_id(),
            span_id = trace.span_id(),
            tenant = Empty,
            principal = Empty,
            request_id = Empty,
        )
    }
}

/// A call that passed all checks.
struct CheckedCall {
    handler: Handler,
    request: Request<Body>,
    permit: Option<OwnedSemaphorePermit>,
    context: CallContext,
    is_unary: bool,
    path: String,
    refuse: Refuse,
}

/// Renders an error in the caller's protocol.
type Refuse = fn(Error) -> Response<Body>;

fn as_status(error: Error) -> Response<Body> {
    Status::from(error).into_http()
}

impl CheckedCall {
    async fn run(self) -> Response<Body> {
        let deadline = self.context.deadline.filter(|_| self.is_unary);
        let trace_id = self.context.trace.trace_id();
        let outcome = self
            .context
            .run(AssertUnwindSafe(self.handler.oneshot(self.request)).catch_unwind());
        let outcome = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, outcome).await,
            None => Ok(outcome.await),
        };
        match outcome {
            Ok(Ok(Ok(response))) => with_reason(response, &self.path),
            Ok(Ok(Err(never))) => match never {},
            Ok(Err(_panic)) => (self.refuse)(panicked(&trace_id)),
            Err(_elapsed) => (self.refuse)(deadline::exceeded()),
        }
    }
}

/// Requests that are not gRPC are accepted only on a public exposure and have one body without
/// frames.
fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type.is_some_and(|value| value.starts_with(b"application/grpc"))
}

/// Returns the tenant check for the call's messages. `None` if the mesh itself calls or the
/// messages name no tenant.
fn scope_check(caller: &Caller, target: Target) -> Option<ScopeCheck> {
    let Target::Method(method) = target else {
        return None;
    };
    let kind = scope::kind_of(&method.path).filter(|kind| *kind != ScopeKind::Unscoped)?;
    (!caller.is_mesh_service()).then(|| ScopeCheck {
        caller: caller.clone(),
        method,
        kind,
    })
}

/// Beginnings of the messages with which generated servers refuse a request that they cannot read.
const UNREADABLE: [&str; 4] = [
    "failed to decode Protobuf message",
    "Missing request message",
    "Unexpected EOF decoding stream",
    "protocol error: received message with",
];

/// Adds a reason to the errors of generated servers, because every Servo error has one. They call a
/// request that cannot be read an internal error; it is the caller's.
fn with_reason(response: Response<Body>, path: &str) -> Response<Body> {
    let status = Status::from_header_map(response.headers());
    let Some(status) = status.filter(|status| status.details().is_empty()) else {
        return response;
    };
    let is_unreadable = || {
        UNREADABLE
            .iter()
            .any(|text| status.message().starts_with(text))
    };
    let error = match status.code() {
        Code::Unimplemented => Error::new(
            Reason::NotImplemented,
            format!("{path} is part of the API but not implemented yet"),
        ),
        Code::Internal if is_unreadable() => Error::new(
            Reason::InvalidField,
            format!("the request cannot be read: {}", status.message()),
        ),
        _ => return response,
    };
    Status::from(error).into_http()
}

fn record(caller: &Caller) {
    let span = Span::current();
    for (field, value) in [
        ("tenant", caller.tenant_text()),
        ("principal", caller.principal.as_str()),
        ("request_id", caller.request_id.as_str()),
    ] {
        if !value.is_empty() {
            span.record(field, value);
        }
    }
}

fn panicked(trace_id: &str) -> Error {
    Error::new(
        Reason::Internal,
        format!("internal error; the service's log has details under trace {trace_id}"),
    )
}

fn unknown(path: &str, service: Service) -> Error {
    Error::new(
        Reason::NotImplemented,
        format!("the {service} does not know {path}"),
    )
}
