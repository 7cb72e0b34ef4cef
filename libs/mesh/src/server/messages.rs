//! Checks every message of a request before the handler sees it: its length, and that it concerns
//! the caller's own tenant. Compression is not supported in the mesh.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use servo_proto::access::Method;
use servo_proto::scope::{self, ScopeKind};
use tonic::Status;

use crate::caller::Caller;
use crate::error::{Error, Reason};

const PREFIX_BYTES: usize = 5;

/// Refuses messages that concern another tenant or workspace than the caller's.
#[derive(Debug, Clone)]
pub(super) struct ScopeCheck {
    pub(super) caller: Caller,
    pub(super) method: &'static Method,
    pub(super) kind: ScopeKind,
}

/// A request body that yields whole, checked messages.
pub(super) struct CheckedMessages<B> {
    inner: B,
    check: MessageCheck,
    buffer: BytesMut,
    inner_ended: bool,
}

struct MessageCheck {
    max: usize,
    scope_check: Option<ScopeCheck>,
}

impl<B> CheckedMessages<B> {
    pub(super) fn new(inner: B, max: usize, scope_check: Option<ScopeCheck>) -> Self {
        CheckedMessages {
            inner,
            check: MessageCheck { max, scope_check },
            buffer: BytesMut::new(),
            inner_ended: false,
        }
    }
}

impl MessageCheck {
    /// Returns the length of the first frame in `data` including its prefix, once the prefix is
    /// complete.
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

    fn check_scope(&self, frame: &[u8]) -> Result<(), Error> {
        let Some(check) = &self.scope_check else {
            return Ok(());
        };
        if frame[0] != 0 {
            return Err(Error::new(
                Reason::NotImplemented,
                "compressed messages are not supported; send them uncompressed",
            ));
        }
        let scope = scope::read(check.kind, &frame[PREFIX_BYTES..])
            .map_err(|error| Error::new(Reason::InvalidField, error.to_string()))?;
        check.caller.check_scope(check.method, check.kind, &scope)
    }
}

impl<B> CheckedMessages<B> {
    /// Returns the next complete message in the buffer, if there is one.
    fn next(&mut self) -> Result<Option<Bytes>, Error> {
        match self.check.frame_len(&self.buffer)? {
            Some(len) if len <= self.buffer.len() => {
                let frame = self.buffer.split_to(len).freeze();
                self.check.check_scope(&frame)?;
                Ok(Some(frame))
            }
            _ => Ok(None),
        }
    }

    /// Adds received data. The usual case, one complete message, is passed on without copying.
    fn push(&mut self, data: Bytes) -> Result<Option<Bytes>, Error> {
        if self.buffer.is_empty() && self.check.frame_len(&data)? == Some(data.len()) {
            self.check.check_scope(&data)?;
            return Ok(Some(data));
        }
        self.buffer.extend_from_slice(&data);
        self.next()
    }
}

impl<B> Body for CheckedMessages<B>
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
                // At most an incomplete message; the decoder reports what is wrong with it.
                let rest = self.buffer.split().freeze();
                return Poll::Ready((!rest.is_empty()).then_some(Ok(Frame::data(rest))));
            }
            let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(cx)) else {
                self.inner_ended = true;
                continue;
            };
            let frame = frame.map_err(|error| Status::from_error(error.into()))?;
            // Clients send no trailers, so frames without data are ignored.
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if let Some(message) = self.push(data)? {
                return Poll::Ready(Some(Ok(Frame::data(message))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.buffer.is_empty() && (self.inner_ended || self.inner.is_end_stream())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use http_body_util::{BodyExt, StreamBody};

    use super::*;
    use crate::tls::PeerIdentity;
    use servo_proto::access::method_of;

    fn frame(message: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend((message.len() as u32).to_be_bytes());
        bytes.extend(message);
        bytes
    }

    /// An encoded message with `tenant = 1`, an unrelated field, and `workspace = 2`.
    fn scoped(tenant: &str, workspace: &str) -> Vec<u8> {
        let text =
            |field: u8, text: &str| [&[field << 3 | 2, text.len() as u8], text.as_bytes()].concat();
        [text(1, tenant), text(9, "else"), text(2, workspace)].concat()
    }

    /// Feeds the frames in pieces of every small size, so that piece boundaries fall everywhere.
    fn check(messages: &[Vec<u8>], scope_check: Option<ScopeCheck>, expected: Result<(), Reason>) {
        let bytes: Vec<u8> = messages.iter().flat_map(|message| frame(message)).collect();
        for piece in (1..=9).chain([bytes.len().max(1)]) {
            let pieces: VecDeque<_> = bytes
                .chunks(piece)
                .map(|p| Ok::<_, Status>(Frame::data(Bytes::copy_from_slice(p))))
                .collect();
            let body = CheckedMessages::new(
                StreamBody::new(futures::stream::iter(pieces)),
                32,
                scope_check.clone(),
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

    fn scope_check(tenant: &str, workspaces: &str) -> Option<ScopeCheck> {
        let mut caller = Caller::on_own_behalf(&PeerIdentity::Worker {
            tenant: tenant.parse().unwrap(),
        });
        caller.workspaces = workspaces.parse().unwrap();
        Some(ScopeCheck {
            caller,
            method: method_of("/servo.v1.SchedulerService/GetRun").unwrap(),
            kind: ScopeKind::Workspace,
        })
    }

    #[test]
    fn too_long_message_is_refused_however_it_is_split() {
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
    fn message_about_another_tenant_is_refused() {
        check(
            &[scoped("acme", "w1"), scoped("acme", "w2")],
            scope_check("acme", "-"),
            Ok(()),
        );
        check(
            &[scoped("acme", "w1"), scoped("evil", "w1")],
            scope_check("acme", "-"),
            Err(Reason::TenantMismatch),
        );
        check(
            &[scoped("acme", "w2")],
            scope_check("acme", "w1"),
            Err(Reason::WorkspaceMismatch),
        );
        check(
            &[vec![]],
            scope_check("acme", "-"),
            Err(Reason::InvalidField),
        );
        // The last value of a repeated field counts, as in the decoder.
        check(
            &[[scoped("acme", "w"), scoped("evil", "w")].concat()],
            scope_check("acme", "-"),
            Err(Reason::TenantMismatch),
        );
        check(
            &[vec![0xff]],
            scope_check("acme", "-"),
            Err(Reason::InvalidField),
        );
    }
}
