//! The messages of a request, one by one, before the handler sees them: none longer than allowed, and none
//! about another tenant than the caller's. Compression is not spoken in the mesh.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use servo_proto::scope::{self, ScopeKind};
use tonic::Status;

use crate::caller::Caller;
use crate::error::{Error, Reason};

const PREFIX_BYTES: usize = 5;

/// Refuses messages that speak about somebody else.
#[derive(Debug, Clone)]
pub(super) struct Wall {
    pub(super) caller: Caller,
    pub(super) kind: ScopeKind,
}

/// A request body that yields whole, checked messages.
pub(super) struct Messages<B> {
    inner: B,
    check: Check,
    gathered: BytesMut,
    inner_ended: bool,
}

struct Check {
    max: usize,
    wall: Option<Wall>,
}

impl<B> Messages<B> {
    pub(super) fn new(inner: B, max: usize, wall: Option<Wall>) -> Self {
        Messages {
            inner,
            check: Check { max, wall },
            gathered: BytesMut::new(),
            inner_ended: false,
        }
    }
}

impl Check {
    /// The length of the first frame in `data` with its prefix, as soon as the prefix is there.
    fn frame_len(&self, data: &[u8]) -> Result<Option<usize>, Error> {
        let Some([_, a, b, c, d]) = data.first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let len = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        if len <= self.max {
            return Ok(Some(PREFIX_BYTES + len));
        }
        let message = format!(
            "the message has {len} bytes, {} are allowed (server.max_message)",
            self.max
        );
        Err(Error::new(Reason::MessageTooLarge, message))
    }

    fn admit(&self, frame: &[u8]) -> Result<(), Error> {
        let Some(Wall { caller, kind }) = &self.wall else {
            return Ok(());
        };
        if frame[0] != 0 {
            return Err(Error::new(
                Reason::NotImplemented,
                "compressed messages are not taken",
            ));
        }
        let scope = scope::read(*kind, &frame[PREFIX_BYTES..])
            .map_err(|error| Error::new(Reason::InvalidField, error.to_string()))?;
        caller.admit_to(&scope.tenant, &scope.workspace)
    }
}

impl<B> Messages<B> {
    /// The next whole message of what was gathered, if there is one.
    fn next(&mut self) -> Result<Option<Bytes>, Error> {
        match self.check.frame_len(&self.gathered)? {
            Some(len) if len <= self.gathered.len() => {
                let frame = self.gathered.split_to(len).freeze();
                self.check.admit(&frame)?;
                Ok(Some(frame))
            }
            _ => Ok(None),
        }
    }

    /// Takes what arrived. The usual case, one whole message, passes without being copied.
    fn take(&mut self, data: Bytes) -> Result<Option<Bytes>, Error> {
        if self.gathered.is_empty() && self.check.frame_len(&data)? == Some(data.len()) {
            self.check.admit(&data)?;
            return Ok(Some(data));
        }
        self.gathered.extend_from_slice(&data);
        self.next()
    }
}

impl<B> Body for Messages<B>
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
        loop {
            if let Some(message) = self.next()? {
                return Poll::Ready(Some(Ok(Frame::data(message))));
            }
            if self.inner_ended {
                // Half a message, if anything: the decoder says what is wrong with it.
                let rest = self.gathered.split().freeze();
                return Poll::Ready((!rest.is_empty()).then_some(Ok(Frame::data(rest))));
            }
            let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(cx)) else {
                self.inner_ended = true;
                continue;
            };
            let frame = frame.map_err(|error| Status::from_error(error.into()))?;
            // A client sends no trailers, so what is no data is nothing.
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if let Some(message) = self.take(data)? {
                return Poll::Ready(Some(Ok(Frame::data(message))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.gathered.is_empty() && (self.inner_ended || self.inner.is_end_stream())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use http_body_util::{BodyExt, StreamBody};

    use super::*;
    use crate::tls::PeerIdentity;

    fn frame(message: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend((message.len() as u32).to_be_bytes());
        bytes.extend(message);
        bytes
    }

    /// A message with `tenant = 1`, a field we do not read, and `workspace = 2`.
    fn scoped(tenant: &str, workspace: &str) -> Vec<u8> {
        let text =
            |field: u8, text: &str| [&[field << 3 | 2, text.len() as u8], text.as_bytes()].concat();
        [text(1, tenant), text(9, "else"), text(2, workspace)].concat()
    }

    /// Feeds the frames in pieces of every small size, so that borders fall everywhere.
    fn check(messages: &[Vec<u8>], wall: Option<Wall>, expected: Result<(), Reason>) {
        let bytes: Vec<u8> = messages.iter().flat_map(|message| frame(message)).collect();
        for piece in (1..=9).chain([bytes.len().max(1)]) {
            let pieces: VecDeque<_> = bytes
                .chunks(piece)
                .map(|p| Ok::<_, Status>(Frame::data(Bytes::copy_from_slice(p))))
                .collect();
            let body = Messages::new(
                StreamBody::new(futures::stream::iter(pieces)),
                32,
                wall.clone(),
            );
            let passed = futures::executor::block_on(body.collect());
            let passed = passed
                .map(|passed| passed.to_bytes())
                .map_err(|status| crate::error::reason_of(&status));
            assert_eq!(
                passed,
                expected.map(|()| bytes.clone().into()).map_err(Some),
                "in pieces of {piece}"
            );
        }
    }

    fn wall(tenant: &str, workspace: &str) -> Option<Wall> {
        let mut caller = Caller::for_itself(&PeerIdentity::Worker {
            tenant: tenant.into(),
        });
        caller.workspace = workspace.into();
        Some(Wall {
            caller,
            kind: ScopeKind::Workspace,
        })
    }

    #[test]
    fn a_longer_message_is_refused_wherever_the_borders_fall() {
        check(&[], None, Ok(()));
        check(&[vec![], vec![], vec![]], None, Ok(()));
        check(
            &[vec![7; 32], vec![7; 3], vec![], vec![7; 32]],
            None,
            Ok(()),
        );
        check(&[vec![7; 33]], None, Err(Reason::MessageTooLarge));
        check(
            &[vec![7; 32], vec![], vec![7; 33]],
            None,
            Err(Reason::MessageTooLarge),
        );
    }

    #[test]
    fn a_message_about_somebody_else_is_refused() {
        check(
            &[scoped("acme", "w1"), scoped("acme", "w2")],
            wall("acme", ""),
            Ok(()),
        );
        check(
            &[scoped("acme", "w1"), scoped("evil", "w1")],
            wall("acme", ""),
            Err(Reason::TenantMismatch),
        );
        check(
            &[scoped("acme", "w2")],
            wall("acme", "w1"),
            Err(Reason::WorkspaceMismatch),
        );
        check(&[vec![]], wall("acme", ""), Err(Reason::TenantMismatch));
        // The last of a repeated field counts, as in the decoder.
        check(
            &[[scoped("acme", "w"), scoped("evil", "w")].concat()],
            wall("acme", ""),
            Err(Reason::TenantMismatch),
        );
        check(&[vec![0xff]], wall("acme", ""), Err(Reason::InvalidField));
    }
}
