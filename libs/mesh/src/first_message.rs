//! Reads the first message of a call without consuming it.
//!
//! The gateway before it forwards a call, and services before a handler runs, inspect the message
//! to learn what the request is about.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tonic::Status;
use tonic::body::Body;

use crate::error::{Error, Reason};

/// The prefix of a gRPC message: a compression flag and four bytes of length.
const PREFIX_BYTES: usize = 5;

/// The first message of a request and its complete body.
pub struct FirstMessage {
    /// The encoded message; empty when the caller sent none.
    pub message: Bytes,
    /// The complete body, including the first message.
    pub body: Body,
}

impl FirstMessage {
    /// Waits for the first complete message. Its length is already limited by the server.
    pub async fn read(mut rest: Body) -> Result<FirstMessage, Status> {
        let mut prefix = BytesMut::new();
        let message = loop {
            if let Some(message) = first_of(&prefix)? {
                break message;
            }
            match rest.frame().await.transpose()?.map(Frame::into_data) {
                Some(Ok(data)) => prefix.extend_from_slice(&data),
                // Trailers or the end of the body.
                Some(Err(_)) | None if prefix.is_empty() => break Bytes::new(),
                Some(Err(_)) | None => return Err(truncated_message().into()),
            }
        };
        Ok(FirstMessage {
            message,
            body: Body::new(PrefixedBody {
                prefix: prefix.freeze(),
                rest,
            }),
        })
    }
}

fn first_of(prefix: &BytesMut) -> Result<Option<Bytes>, Error> {
    let Some(([compressed, length @ ..], after)) = prefix.split_first_chunk::<PREFIX_BYTES>()
    else {
        return Ok(None);
    };
    if *compressed != 0 {
        let message = "the request is compressed; send it with grpc-encoding identity";
        return Err(Error::new(Reason::NotImplemented, message));
    }
    let length = u32::from_be_bytes(*length) as usize;
    Ok(after.get(..length).map(Bytes::copy_from_slice))
}

fn truncated_message() -> Error {
    Error::new(
        Reason::InvalidField,
        "the request ends in the middle of its first message",
    )
}

/// A body that yields `prefix`, which was already read, and then the rest.
struct PrefixedBody {
    prefix: Bytes,
    rest: Body,
}

impl http_body::Body for PrefixedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if !self.prefix.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.prefix)))));
        }
        Pin::new(&mut self.rest).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.prefix.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.size_hint();
        let prefix = self.prefix.len() as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + prefix);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + prefix);
        }
        hint
    }
}
