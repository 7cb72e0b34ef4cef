//! Calls any method of the API with any message, as its descriptors describe them.

use std::time::Duration;

use prost::Message as _;
use prost::bytes::{Buf, BufMut, Bytes};
use prost_reflect::{DynamicMessage, MessageDescriptor};
use serde_json::{Value, json};
use servo_local::MeshInfo;
use servo_model::Service;
use servo_proto::access::Method;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status};

const DEADLINE: Duration = Duration::from_secs(20);

/// A connection to the gateway as a user would open it.
pub(crate) fn gateway(mesh: &MeshInfo) -> Channel {
    let ca = std::fs::read_to_string(mesh.ca_path()).unwrap();
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
    let address = mesh.address(Service::Gateway);
    let endpoint = Endpoint::from_shared(address.replace("127.0.0.1", "localhost")).unwrap();
    endpoint.tls_config(tls).unwrap().connect_lazy()
}

/// The request of a method.
pub(crate) fn input(method: &Method) -> MessageDescriptor {
    let service = servo_proto::descriptors().get_service_by_name(&method.service);
    let service = service.expect("the method's service");
    let found = service.methods().find(|each| each.name() == method.name);
    found.expect("the method").input()
}

/// Encodes a request from JSON, adding `fields` where the message has a field of that name that
/// the JSON does not set.
pub(crate) fn encode(method: &Method, request: &Value, fields: &[(&str, &str)]) -> Bytes {
    let mut request = request.clone();
    let descriptor = input(method);
    for (name, value) in fields {
        let is_own = descriptor.get_field_by_name(name).is_some();
        if is_own && request.get(name).is_none() {
            request[name] = json!(value);
        }
    }
    let message = DynamicMessage::deserialize(descriptor, &request);
    let message = message.unwrap_or_else(|error| panic!("{}: {error}: {request}", method.path));
    message.encode_to_vec().into()
}

/// Sends one message and returns the first one of the response; `None` for a stream that has
/// begun, or ended without a message.
pub(crate) async fn call(
    channel: &Channel,
    method: &Method,
    key: Option<&str>,
    message: Bytes,
) -> Result<Option<Bytes>, Status> {
    let mut grpc = tonic::client::Grpc::new(channel.clone());
    grpc.ready()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let mut request = Request::new(tokio_stream::once(message));
    request.set_timeout(DEADLINE);
    if let Some(key) = key {
        let value = format!("Bearer {key}").parse().unwrap();
        request.metadata_mut().insert("authorization", value);
    }
    let path = method.path.parse().unwrap();
    let mut response = grpc.streaming(request, path, RawBytes).await?.into_inner();
    if method.server_streaming {
        return Ok(None);
    }
    response.message().await
}

/// Messages as they are.
struct RawBytes;

impl Codec for RawBytes {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = RawBytes;
    type Decoder = RawBytes;

    fn encoder(&mut self) -> RawBytes {
        RawBytes
    }

    fn decoder(&mut self) -> RawBytes {
        RawBytes
    }
}

impl Encoder for RawBytes {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message);
        Ok(())
    }
}

impl Decoder for RawBytes {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let length = buffer.remaining();
        Ok(Some(buffer.copy_to_bytes(length)))
    }
}
