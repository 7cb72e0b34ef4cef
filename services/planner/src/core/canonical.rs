//! The normal order of a manifest, and the canonical JSON of messages.
//!
//! A message's canonical form is its proto3 JSON with the field names of the proto files, defaults left out, written
//! as canonical JSON: every language that speaks protobuf arrives at the same bytes.

use prost_reflect::{DynamicMessage, ReflectMessage as _, SerializeOptions};
use serde::{Serialize, Serializer};
use servo_model::Digest;
use servo_model::json::{Json, JsonError, to_canonical};
use servo_proto::v1::{AssetDefinition, Manifest};

/// Sorts every list whose order means nothing, so that equal content has one digest.
pub(crate) fn normalise(manifest: &mut Manifest) {
    manifest.assets.sort_by(|a, b| a.key.cmp(&b.key));
    manifest.schedules.sort_by(|a, b| a.name.cmp(&b.name));
    manifest.sensors.sort_by(|a, b| a.name.cmp(&b.name));
    manifest.assets.iter_mut().for_each(normalise_asset);
}

fn normalise_asset(asset: &mut AssetDefinition) {
    asset.owners.sort_unstable();
    asset.dependencies.sort_by(|a, b| (&a.upstream, &a.parameter).cmp(&(&b.upstream, &b.parameter)));
    asset.checks.sort_by(|a, b| a.name.cmp(&b.name));
    asset.secrets.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(partitions) = &mut asset.partitions {
        partitions.dimensions.sort_by(|a, b| a.name.cmp(&b.name));
    }
    for mapping in asset.dependencies.iter_mut().filter_map(|dependency| dependency.mapping.as_mut()) {
        mapping.dimensions.sort_by(|a, b| a.upstream.cmp(&b.upstream));
    }
    if let Some(resources) = &mut asset.resources {
        resources.capabilities.sort_unstable();
    }
    if let Some(retry) = &mut asset.retry {
        retry.retry_on_categories.sort_unstable();
        retry.retry_on_types.sort_unstable();
        retry.never_on_types.sort_unstable();
    }
}

/// The sha256 of a message's canonical form.
pub(crate) fn digest(message: &impl prost::Message, name: &str) -> Result<Digest, JsonError> {
    canonical(message, name).map(Digest::of)
}

/// The canonical form as a value.
pub(crate) fn json(message: &impl prost::Message, name: &str) -> Result<Json, JsonError> {
    Json::parse(&canonical(message, name)?)
}

/// `name` is the message's own, without the package.
pub(crate) fn canonical(message: &impl prost::Message, name: &str) -> Result<String, JsonError> {
    to_canonical(&ProtoJson(dynamic(message, name)))
}

/// Reads a manifest from its JSON form.
pub(crate) fn parse_manifest(bytes: &[u8]) -> Result<Manifest, String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let message = DynamicMessage::deserialize(descriptor("Manifest"), &mut reader);
    let message = message.map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    message.transcode_to().map_err(|error| error.to_string())
}

fn dynamic(message: &impl prost::Message, name: &str) -> DynamicMessage {
    let mut dynamic = DynamicMessage::new(descriptor(name));
    dynamic.transcode_from(message).expect("a message fits its own descriptor");
    debug_assert_eq!(dynamic.descriptor().name(), name);
    dynamic
}

fn descriptor(name: &str) -> prost_reflect::MessageDescriptor {
    let full = format!("servo.v1.{name}");
    servo_proto::descriptors().get_message_by_name(&full).expect("the build compiled this message")
}

struct ProtoJson(DynamicMessage);

impl Serialize for ProtoJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_with_options(serializer, &SerializeOptions::new().use_proto_field_name(true))
    }
}
