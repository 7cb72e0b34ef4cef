//! W3C trace context: the trace that a call belongs to, accepted from the caller and sent to peers.

use std::fmt;

use http::{HeaderMap, HeaderValue};

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
const TRACESTATE_BYTES_MAX: usize = 512;
const SAMPLED: u8 = 1;

/// One span of a trace. Its text form is also stored in events and envelopes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    flags: u8,
    state: Option<HeaderValue>,
}

impl TraceContext {
    /// The first span of a new trace.
    pub fn root() -> TraceContext {
        TraceContext {
            trace_id: nonzero_u128(),
            span_id: nonzero_u64(),
            flags: SAMPLED,
            state: None,
        }
    }

    /// A child span of this one.
    pub fn child(&self) -> TraceContext {
        TraceContext {
            span_id: nonzero_u64(),
            ..self.clone()
        }
    }

    /// Parses `00-<trace>-<span>-<flags>` of version 00, or of a later version that begins the same
    /// way.
    pub fn parse(traceparent: &str) -> Option<TraceContext> {
        let mut parts = traceparent.split('-');
        let version = hex(parts.next()?, 2)?;
        let trace_id = hex(parts.next()?, 32)?;
        let span_id = u64::try_from(hex(parts.next()?, 16)?).ok()?;
        let flags = u8::try_from(hex(parts.next()?, 2)?).ok()?;
        let shape = if version == 0 {
            parts.next().is_none()
        } else {
            version != 0xff
        };
        (shape && trace_id != 0 && span_id != 0).then_some(TraceContext {
            trace_id,
            span_id,
            flags,
            state: None,
        })
    }

    /// Reads the caller's context. `None` if it is absent or malformed.
    pub(crate) fn extract(headers: &HeaderMap) -> Option<TraceContext> {
        let mut context = TraceContext::parse(headers.get(TRACEPARENT)?.to_str().ok()?)?;
        context.state = headers
            .get(TRACESTATE)
            .filter(|state| state.len() <= TRACESTATE_BYTES_MAX)
            .cloned();
        Some(context)
    }

    pub(crate) fn inject(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::try_from(self.to_string()) {
            headers.insert(TRACEPARENT, value);
        }
        if let Some(state) = &self.state {
            headers.insert(TRACESTATE, state.clone());
        }
    }

    /// The vendors' tracestate; empty when there is none.
    pub fn state(&self) -> &str {
        self.state
            .as_ref()
            .and_then(|state| state.to_str().ok())
            .unwrap_or_default()
    }

    /// Whether the originator of the trace wants it recorded.
    pub(crate) fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    pub(crate) fn flags(&self) -> u8 {
        self.flags
    }

    pub(crate) fn trace_id_bytes(&self) -> [u8; 16] {
        self.trace_id.to_be_bytes()
    }

    pub(crate) fn span_id_bytes(&self) -> [u8; 8] {
        self.span_id.to_be_bytes()
    }

    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    pub fn span_id(&self) -> String {
        format!("{:016x}", self.span_id)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace_id, self.span_id, self.flags
        )
    }
}

fn hex(text: &str, digits: usize) -> Option<u128> {
    let lower = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    (text.len() == digits && text.chars().all(lower))
        .then(|| u128::from_str_radix(text, 16).ok())?
}

fn nonzero_u128() -> u128 {
    rand::random::<u128>().max(1)
}

fn nonzero_u64() -> u64 {
    rand::random::<u64>().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn traceparent_is_formatted_as_parsed() {
        assert_eq!(TraceContext::parse(GOOD).unwrap().to_string(), GOOD);
        let child = TraceContext::parse(GOOD).unwrap().child();
        assert_eq!(child.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        assert_ne!(child.span_id(), "b7ad6b7169203331");
    }

    #[test]
    fn malformed_traceparent_is_rejected() {
        for broken in [
            "",
            "00",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::parse(broken), None, "{broken}");
        }
        assert!(TraceContext::parse(&format!("01{}-more", &GOOD[2..])).is_some());
    }
}
