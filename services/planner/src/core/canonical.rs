//! Normalisation of manifests, and the canonical JSON of messages.
//!
//! A message's canonical form is its proto3 JSON with the field names of the proto files, without
//! defaults, written as canonical JSON: every language that supports protobuf arrives at the same
//! bytes.

use std::collections::BTreeMap;

use prost_reflect::{DynamicMessage, ReflectMessage as _, SerializeOptions};
use serde::{Serialize, Serializer};
use servo_model::Digest;
use servo_model::json::{Json, JsonError, to_canonical};
use servo_proto::v1::{AssetDefinition, Manifest};

/// Sorts every list whose order has no meaning, so that equal content has one digest.
pub(crate) fn normalise(manifest: &mut Manifest) {
    manifest.assets.sort_by(|a, b| a.key.cmp(&b.key));
    manifest.schedules.sort_by(|a, b| a.name.cmp(&b.name));
    manifest.sensors.sort_by(|a, b| a.name.cmp(&b.name));
    manifest.assets.iter_mut().for_each(normalise_asset);
}

fn normalise_asset(asset: &mut AssetDefinition) {
    asset.owners.sort_unstable();
    asset
        .dependencies
        .sort_by(|a, b| (&a.upstream, &a.parameter).cmp(&(&b.upstream, &b.parameter)));
    asset.checks.sort_by(|a, b| a.name.cmp(&b.name));
    asset.secrets.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(partitions) = &mut asset.partitions {
        partitions.dimensions.sort_by(|a, b| a.name.cmp(&b.name));
    }
    for mapping in asset
        .dependencies
        .iter_mut()
        .filter_map(|dependency| dependency.mapping.as_mut())
    {
        mapping
            .dimensions
            .sort_by(|a, b| a.upstream.cmp(&b.upstream));
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

/// Returns the sha256 of a message's canonical form.
pub(crate) fn digest(message: &impl prost::Message, name: &str) -> Result<Digest, JsonError> {
    canonical(message, name).map(Digest::of)
}

/// Returns the [`digest`] of a manifest, computed asset by asset, because one value for a large
/// manifest would take many times its size.
pub(crate) fn manifest_digest(manifest: &mut Manifest) -> Result<Digest, JsonError> {
    let assets = std::mem::take(&mut manifest.assets);
    let written = manifest_text(manifest, &assets);
    manifest.assets = assets;
    written.map(Digest::of)
}

fn manifest_text(rest: &Manifest, assets: &[AssetDefinition]) -> Result<String, JsonError> {
    let Json::Object(rest) = json(rest, "Manifest")? else {
        return Ok(String::new());
    };
    let mut members: BTreeMap<String, String> = rest
        .into_iter()
        .map(|(name, value)| (name, value.to_string()))
        .collect();
    if !assets.is_empty() {
        let texts: Result<Vec<String>, JsonError> = assets
            .iter()
            .map(|asset| canonical(asset, "AssetDefinition"))
            .collect();
        members.insert("assets".to_owned(), format!("[{}]", texts?.join(",")));
    }
    let members: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    Ok(format!("{{{}}}", members.join(",")))
}

/// Returns the canonical form as a JSON value.
pub(crate) fn json(message: &impl prost::Message, name: &str) -> Result<Json, JsonError> {
    Json::parse(&canonical(message, name)?)
}

/// `name` is the message's name without the package.
pub(crate) fn canonical(message: &impl prost::Message, name: &str) -> Result<String, JsonError> {
    to_canonical(&ProtoJson(dynamic(message, name)))
}

/// Parses a manifest from its JSON form.
pub(crate) fn parse_manifest(bytes: &[u8]) -> Result<Manifest, String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let message = DynamicMessage::deserialize(descriptor("Manifest"), &mut reader);
    let message = message.map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    message.transcode_to().map_err(|error| error.to_string())
}

fn dynamic(message: &impl prost::Message, name: &str) -> DynamicMessage {
    let mut dynamic = DynamicMessage::new(descriptor(name));
    dynamic
        .transcode_from(message)
        .expect("a message fits its own descriptor");
    debug_assert_eq!(dynamic.descriptor().name(), name);
    dynamic
}

fn descriptor(name: &str) -> prost_reflect::MessageDescriptor {
    let full = format!("servo.v1.{name}");
    servo_proto::descriptors()
        .get_message_by_name(&full)
        .expect("the build compiled this message")
}

struct ProtoJson(DynamicMessage);

impl Serialize for ProtoJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_with_options(
            serializer,
            &SerializeOptions::new().use_proto_field_name(true),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::samples::{asset, days, partitioned, source};

    #[test]
    fn the_piecewise_manifest_digest_equals_the_whole_digest() {
        let labels = BTreeMap::from([("team".to_owned(), "core".to_owned())]);
        let whole = Manifest {
            format: 1,
            code_version: "c0ffee".to_owned(),
            labels,
            artifact: Some(Default::default()),
            assets: vec![
                source("raw/x"),
                partitioned(asset("n/a", &["raw/x"]), vec![days()]),
            ],
            schedules: vec![Default::default()],
            ..Default::default()
        };
        for mut manifest in [
            whole.clone(),
            Manifest {
                assets: Vec::new(),
                ..whole
            },
            Manifest::default(),
        ] {
            let expected = digest(&manifest, "Manifest").unwrap();
            assert_eq!(manifest_digest(&mut manifest).unwrap(), expected);
        }
    }

    #[test]
    fn the_canonical_form_matches_other_languages() {
        let text = canonical(&source("raw/x"), "AssetDefinition").unwrap();
        assert_eq!(text, r#"{"key":"raw/x","source":true}"#);
        let parsed =
            parse_manifest(br#"{"format": 1, "assets": [{"key": "raw/x", "source": true}]}"#)
                .unwrap();
        assert_eq!(parsed.assets, [source("raw/x")]);
        for wrong in ["", "[]", "{\"assets\": 3}", "{\"unknown\": 1}", "{} {}"] {
            assert!(parse_manifest(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
