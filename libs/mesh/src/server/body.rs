//! The answer on its way out: measured to its last byte, and, if it is a stream, ended by its deadline or
//! when the service drains.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

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

/// What a call holds while it is under way.
pub(super) struct UnderWay {
    pub(super) meter: Meter,
    pub(super) span: Span,
    pub(super) permit: Option<OwnedSemaphorePermit>,
}

impl UnderWay {
    /// Counts and, if it failed, logs the call: once, here, where it ends.
    fn finish(self, status: &Status) {
        self.span.in_scope(|| log(status));
        spans::answered(&self.span, status.code());
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

/// What ends a stream from our side.
pub(super) struct Ends {
    pub(super) deadline: Option<Instant>,
    pub(super) draining: CancellationToken,
}

/// Follows a response to its end. `ends` is for streams only: one answer is already made when it gets here.
pub(super) fn follow(
    mut response: Response<Body>,
    call: UnderWay,
    ends: Option<Ends>,
) -> Response<Body> {
    let refused = response.extensions_mut().remove::<Status>();
    if let Some(status) = refused.or_else(|| Status::from_header_map(response.headers())) {
        call.finish(&status);
        return response;
    }
    response.map(|inner| Body::new(Followed::new(inner, call, ends)))
}

struct Followed {
    inner: Body,
    call: Option<UnderWay>,
    deadline: Option<Pin<Box<Sleep>>>,
    draining: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl Followed {
    fn new(inner: Body, call: UnderWay, ends: Option<Ends>) -> Followed {
        let deadline = ends.as_ref().and_then(|ends| ends.deadline);
        Followed {
            inner,
            call: Some(call),
            deadline: deadline.map(|at| Box::pin(tokio::time::sleep_until(at))),
            draining: ends.map(|ends| Box::pin(ends.draining.cancelled_owned())),
        }
    }

    fn finish(&mut self, status: &Status) {
        if let Some(call) = self.call.take() {
            call.finish(status);
        }
    }

    /// Why the stream ends now, if it does.
    fn ended(&mut self, cx: &mut Context<'_>) -> Option<Error> {
        if self
            .deadline
            .as_mut()
            .is_some_and(|end| end.as_mut().poll(cx).is_ready())
        {
            return Some(deadline::exceeded());
        }
        let draining = self
            .draining
            .as_mut()
            .is_some_and(|end| end.as_mut().poll(cx).is_ready());
        draining.then(|| {
            Error::new(
                Reason::NotReady,
                "the service is going away; open the stream again",
            )
        })
    }

    fn end(&mut self, error: Error) -> Frame<Bytes> {
        let status = Status::from(error);
        let mut trailers = HeaderMap::new();
        // Writing our own status cannot fail; a stream without trailers would still read as broken.
        let _ = status.add_header(&mut trailers);
        self.finish(&status);
        self.inner = Body::empty();
        Frame::trailers(trailers)
    }
}

impl http_body::Body for Followed {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.call.is_none() {
            return Poll::Ready(None);
        }
        if let Some(error) = self.ended(cx) {
            return Poll::Ready(Some(Ok(self.end(error))));
        }
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(status) = frame.trailers_ref().and_then(Status::from_header_map) {
                    self.finish(&status);
                }
            }
            Some(Err(status)) => self.finish(&status.clone()),
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
