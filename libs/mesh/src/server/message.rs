//! The size limit of a single message, enforced on the frame's length before a byte of it is buffered.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tonic::Status;

use crate::error::{Error, Reason};

const PREFIX_BYTES: usize = 5;

/// A request body whose gRPC messages are at most `max` bytes long.
pub(super) struct Limited<B> {
    inner: B,
    max: usize,
    prefix: [u8; PREFIX_BYTES],
    prefix_len: usize,
    message_left: usize,
}

impl<B> Limited<B> {
    pub(super) fn new(inner: B, max: usize) -> Self {
        Limited { inner, max, prefix: [0; PREFIX_BYTES], prefix_len: 0, message_left: 0 }
    }

    /// Walks over the frames in `data`: a flag, four bytes of length, the message.
    fn check(&mut self, mut data: &[u8]) -> Result<(), Error> {
        while !data.is_empty() {
            let skipped = self.message_left.min(data.len());
            self.message_left -= skipped;
            data = &data[skipped..];
            let taken = if self.message_left > 0 { 0 } else { self.take_prefix(data) };
            data = &data[taken..];
            if self.prefix_len == PREFIX_BYTES {
                self.begin_message()?;
            }
        }
        Ok(())
    }

    fn take_prefix(&mut self, data: &[u8]) -> usize {
        let taken = (PREFIX_BYTES - self.prefix_len).min(data.len());
        self.prefix[self.prefix_len..self.prefix_len + taken].copy_from_slice(&data[..taken]);
        self.prefix_len += taken;
        taken
    }

    fn begin_message(&mut self) -> Result<(), Error> {
        let [_, a, b, c, d] = self.prefix;
        self.message_left = u32::from_be_bytes([a, b, c, d]) as usize;
        self.prefix_len = 0;
        if self.message_left <= self.max {
            return Ok(());
        }
        let message = format!(
            "the message has {} bytes, {} are allowed (server.max_message)",
            self.message_left, self.max
        );
        Err(Error::new(Reason::MessageTooLarge, message))
    }
}

impl<B> Body for Limited<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(cx)) else { return Poll::Ready(None) };
        let frame = frame.map_err(|error| Status::from_error(error.into()))?;
        if let Some(data) = frame.data_ref() {
            self.check(data)?;
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(len: usize) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend((len as u32).to_be_bytes());
        bytes.extend(vec![7; len]);
        bytes
    }

    /// Feeds the bytes in pieces of every size up to nine, so that borders fall everywhere.
    fn check(messages: &[usize], max: usize, fine: bool) {
        let bytes: Vec<u8> = messages.iter().flat_map(|len| frame(*len)).collect();
        for piece in 1..=9 {
            let mut limited = Limited::new((), max);
            let outcome = bytes.chunks(piece).try_for_each(|chunk| limited.check(chunk));
            assert_eq!(outcome.is_ok(), fine, "{messages:?} in pieces of {piece} with at most {max}");
        }
    }

    #[test]
    fn a_longer_message_is_refused_wherever_the_frame_borders_fall() {
        check(&[], 10, true);
        check(&[0, 0, 0], 0, true);
        check(&[10, 3, 0, 10], 10, true);
        check(&[11], 10, false);
        check(&[10, 0, 11], 10, false);
    }
}
