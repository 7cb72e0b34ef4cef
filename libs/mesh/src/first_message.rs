//! The first message of a call, read without taking it away.
//!
//! Doors look at what a request is about before they pass it on: the gateway before it forwards, every service
//! before its handler runs.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tonic::Status;
use tonic::body::Body;

use crate::error::{Error, Reason};

/// A flag and four bytes of length.
const PREFIX_BYTES: usize = 5;

/// What came first, and the body as it was.
pub struct FirstMessage {
    /// The encoded message; empty when the caller sent none.
    pub message: Bytes,
    /// All of the request, this message included.
    pub body: Body,
}

impl FirstMessage {
    /// Waits for the first whole message. The gate has bounded its length already.
    pub async fn read(mut rest: Body) -> Result<FirstMessage, Status> {
        let mut held = BytesMut::new();
        let message = loop {
            if let Some(message) = first_of(&held)? {
                break message;
            }
            match rest.frame().await.transpose()?.map(Frame::into_data) {
                Some(Ok(data)) => held.extend_from_slice(&data),
                // Trailers or the end.
                Some(Err(_)) | None if held.is_empty() => break Bytes::new(),
                Some(Err(_)) | None => return Err(torn().into()),
            }
        };
        Ok(FirstMessage {
            message,
            body: Body::new(Replayed {
                held: held.freeze(),
                rest,
            }),
        })
    }
}

fn first_of(held: &BytesMut) -> Result<Option<Bytes>, Error> {
    let Some(([compressed, length @ ..], after)) = held.split_first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    if *compressed != 0 {
        let message = "the request is compressed; send it with grpc-encoding identity";
        return Err(Error::new(Reason::NotImplemented, message));
    }
    let length = u32::from_be_bytes(*length) as usize;
    Ok(after.get(..length).map(Bytes::copy_from_slice))
}

fn torn() -> Error {
    Error::new(
        Reason::InvalidField,
        "the request ends in the middle of its first message",
    )
}

/// What was read already, then the rest.
struct Replayed {
    held: Bytes,
    rest: Body,
}

impl http_body::Body for Replayed {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if !self.held.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.held)))));
        }
        Pin::new(&mut self.rest).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.size_hint();
        let held = self.held.len() as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + held);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + held);
        }
        hint
    }
}
