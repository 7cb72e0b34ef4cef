//! Adds request ids to mutations without one, so that the server recognizes a repeat.

use std::collections::HashMap;
use std::sync::LazyLock;

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{DecodeContext, WireType, decode_key, encode_key, encode_varint, skip_field};

const FIELD: &str = "request_id";
/// A gRPC message is preceded by a flag and four bytes of length.
const PREFIX_BYTES: usize = 5;

/// The framed message with a request id, and whether it has one; some methods do not take one.
pub(crate) fn ensure(path: &str, framed: Bytes) -> (Bytes, bool) {
    let Some(&number) = NUMBERS.get(path) else {
        return (framed, false);
    };
    let Some(message) = framed.get(PREFIX_BYTES..) else {
        return (framed, false);
    };
    match has_field(message, number) {
        Some(true) => (framed, true),
        Some(false) => (
            with_field(&framed, number, &ulid::Ulid::generate().to_string()),
            true,
        ),
        // A malformed message is left for the server to refuse.
        None => (framed, false),
    }
}

/// The number of the field, for every method whose request has it.
static NUMBERS: LazyLock<HashMap<String, u32>> = LazyLock::new(|| {
    let methods = servo_proto::descriptors()
        .services()
        .flat_map(|s| s.methods().collect::<Vec<_>>());
    let number = |method: prost_reflect::MethodDescriptor| {
        let field = method.input().get_field_by_name(FIELD)?;
        Some((
            format!("/{}/{}", method.parent_service().full_name(), method.name()),
            field.number(),
        ))
    };
    methods.filter_map(number).collect()
});

fn has_field(mut message: &[u8], number: u32) -> Option<bool> {
    while !message.is_empty() {
        let (field, wire) = decode_key(&mut message).ok()?;
        if field == number {
            return Some(true);
        }
        skip_field(wire, field, &mut message, DecodeContext::default()).ok()?;
    }
    Some(false)
}

/// Appends the field, because the order of fields does not matter.
fn with_field(framed: &[u8], number: u32, value: &str) -> Bytes {
    let mut message = BytesMut::from(&framed[PREFIX_BYTES..]);
    encode_key(number, WireType::LengthDelimited, &mut message);
    encode_varint(value.len() as u64, &mut message);
    message.put_slice(value.as_bytes());
    let mut whole = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    whole.put_u8(framed[0]);
    whole.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    whole.put(message);
    whole.freeze()
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use servo_proto::v1::{DrainWorkerRequest, GetRunRequest};

    use super::*;

    const DRAIN: &str = "/servo.v1.DispatcherService/DrainWorker";

    fn framed(message: &impl Message) -> Bytes {
        let mut bytes = vec![0];
        bytes.extend((message.encoded_len() as u32).to_be_bytes());
        bytes.extend(message.encode_to_vec());
        bytes.into()
    }

    #[test]
    fn mutation_gets_a_request_id_or_keeps_its_own() {
        let request = DrainWorkerRequest {
            tenant: "acme".into(),
            worker_id: "w".into(),
            ..Default::default()
        };
        let (body, has_id) = ensure(DRAIN, framed(&request));
        let sent = DrainWorkerRequest::decode(&body[PREFIX_BYTES..]).unwrap();
        assert!(has_id && sent.request_id.len() == 26);
        let length = u32::from_be_bytes(body[1..PREFIX_BYTES].try_into().unwrap());
        assert_eq!(length as usize, body.len() - PREFIX_BYTES);
        assert_eq!(
            DrainWorkerRequest {
                request_id: String::new(),
                ..sent
            },
            request
        );

        let own = framed(&DrainWorkerRequest {
            request_id: "mine".into(),
            ..request
        });
        assert_eq!(ensure(DRAIN, own.clone()), (own, true));
    }

    #[test]
    fn read_gets_no_request_id() {
        let read = framed(&GetRunRequest {
            tenant: "acme".into(),
            ..Default::default()
        });
        assert_eq!(
            ensure("/servo.v1.SchedulerService/GetRun", read.clone()),
            (read, false)
        );
    }
}
