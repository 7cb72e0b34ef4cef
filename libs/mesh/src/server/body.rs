//! Tracks the response: measures the call to its last byte and ends streams at their deadline or
//! when the service drains.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::body::Body;
use tonic::{Code, Status};
use tracing::{Span, info, warn};

use super::deadline;
use crate::error::{Error, Reason};
use crate::metrics::{Meter, code_name};
use crate::spans;

/// The delay after which a lost service is probably back.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Resources of a call in flight.
pub(super) struct InFlightCall {
    pub(super) meter: Meter,
    pub(super) span: Span,
    pub(super) permit: Option<OwnedSemaphorePermit>,
}

impl InFlightCall {
    /// Counts the call and, if it failed, logs it. Called once, when the call ends.
    fn finish(self, status: &Status) {
        self.span.in_scope(|| log(status));
        spans::record_end(&self.span, status.code());
        self.meter.finish(status.code());
    }
}

fn log(status: &Status) {
    let (code, reason) = (code_name(status.code()), status.message());
    match status.code() {
        Code::Ok => {}
        Code::Internal | Code::Unknown | Code::DataLoss => warn!(code, reason, "call failed"),
        _ => info!(code, reason, "call refused"),
    }
}

/// Conditions on which the server ends a stream.
pub(super) struct StreamLimits {
    pub(super) deadline: Option<Instant>,
    pub(super) draining: CancellationToken,
}

/// Tracks a response to its end. `limits` is for streams only, because a unary response is already
/// complete.
pub(super) fn track(
    mut response: Response<Body>,
    call: InFlightCall,
    limits: Option<StreamLimits>,
) -> Response<Body> {
    let refused = response.extensions_mut().remove::<Status>();
    if let Some(status) = refused.or_else(|| Status::from_header_map(response.headers())) {
        call.finish(&status);
        return response;
    }
    response.map(|inner| Body::new(TrackedBody::new(inner, call, limits)))
}

/// The error of a response that ends because the service behind it is gone.
fn connection_lost() -> Error {
    let message = "the connection to the service was lost during the response; call again";
    Error::new(Reason::DependencyUnavailable, message).retry_after(RETRY_AFTER)
}

struct TrackedBody {
    inner: Body,
    call: Option<InFlightCall>,
    deadline: Option<Pin<Box<Sleep>>>,
    draining: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl TrackedBody {
    fn new(inner: Body, call: InFlightCall, limits: Option<StreamLimits>) -> TrackedBody {
        let deadline = limits.as_ref().and_then(|limits| limits.deadline);
        TrackedBody {
            inner,
            call: Some(call),
            deadline: deadline.map(|at| Box::pin(tokio::time::sleep_until(at))),
            draining: limits.map(|limits| Box::pin(limits.draining.cancelled_owned())),
        }
    }

    fn finish(&mut self, status: &Status) {
        if let Some(call) = self.call.take() {
            call.finish(status);
        }
    }

    /// Returns the reason to end the stream now, if there is one.
    fn end_reason(&mut self, cx: &mut Context<'_>) -> Option<Error> {
        if self
            .deadline
            .as_mut()
            .is_some_and(|future| future.as_mut().poll(cx).is_ready())
        {
            return Some(deadline::exceeded());
        }
        let draining = self
            .draining
            .as_mut()
            .is_some_and(|future| future.as_mut().poll(cx).is_ready());
        draining.then(|| {
            Error::new(
                Reason::NotReady,
                "the service is stopping; open the stream again",
            )
        })
    }

    fn end_with(&mut self, error: Error) -> Frame<Bytes> {
        let status = Status::from(error);
        let mut trailers = HeaderMap::new();
        // Writing our own status cannot fail; a stream without trailers would be read as broken
        // anyway.
        let _ = status.add_header(&mut trailers);
        self.finish(&status);
        self.inner = Body::empty();
        Frame::trailers(trailers)
    }
}

impl http_body::Body for TrackedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.call.is_none() {
            return Poll::Ready(None);
        }
        if let Some(error) = self.end_reason(cx) {
            return Poll::Ready(Some(Ok(self.end_with(error))));
        }
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(status) = frame.trailers_ref().and_then(Status::from_header_map) {
                    self.finish(&status);
                }
            }
            // Without trailers the caller would see a protocol error, which it may not retry.
            Some(Err(_)) => return Poll::Ready(Some(Ok(self.end_with(connection_lost())))),
            None => self.finish(&Status::ok("")),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.call.is_none() || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
