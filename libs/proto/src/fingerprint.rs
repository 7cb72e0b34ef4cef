//! The fingerprint of a request for a run.

use prost::Message;
use prost_reflect::DynamicMessage;
use servo_model::Digest;
use servo_model::json::{JsonError, to_canonical};
use servo_model::request::RequestFingerprint;

use crate::v1;

/// The fingerprint of everything in a spec that determines the run: two requests under one run key
/// are the same request exactly when their fingerprints are equal. The order of the selection does
/// not matter; the configuration is hashed as bytes, because users may write floats.
pub fn request_fingerprint(spec: &v1::RunSpec) -> Result<RequestFingerprint, JsonError> {
    let json = to_canonical(&in_json(&normal(spec)))?;
    Ok(RequestFingerprint::from_digest(Digest::of(json)))
}

/// The spec without irrelevant differences, and with the digest of the configuration in its place.
pub(crate) fn normal(spec: &v1::RunSpec) -> v1::RunSpec {
    let mut spec = spec.clone();
    spec.selection.sort();
    spec.selection.dedup();
    if !spec.config_json.is_empty() {
        spec.config_json = Digest::of(&spec.config_json).to_string();
    }
    spec
}

/// The message for protobuf's canonical mapping to JSON.
pub(crate) fn in_json(spec: &v1::RunSpec) -> DynamicMessage {
    let descriptor = crate::descriptors()
        .get_message_by_name("servo.v1.RunSpec")
        .expect("the descriptors contain every message of the code");
    DynamicMessage::decode(descriptor, spec.encode_to_vec().as_slice())
        .expect("a message decodes as itself")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(selection: &[&str], config: &str) -> v1::RunSpec {
        v1::RunSpec {
            selection: selection.iter().map(|s| (*s).to_owned()).collect(),
            config_json: config.to_owned(),
            ..Default::default()
        }
    }

    fn print(spec: &v1::RunSpec) -> String {
        request_fingerprint(spec).unwrap().to_string()
    }

    #[test]
    fn order_and_repetition_of_the_selection_do_not_matter() {
        assert_eq!(
            print(&spec(&["a/b", "a/c"], "")),
            print(&spec(&["a/c", "a/b", "a/c"], ""))
        );
    }

    #[test]
    fn fingerprint_covers_everything_that_determines_the_run() {
        let plain = spec(&["a/b"], "");
        let mut others = vec![
            spec(&["a/c"], ""),
            spec(&["a/b"], "{\"x\": 1.5}"),
            spec(&["a/b"], "{\"x\":1.5}"),
        ];
        others.push(v1::RunSpec {
            priority: 1,
            ..plain.clone()
        });
        others.push(v1::RunSpec {
            deployment_id: "d".to_owned(),
            ..plain.clone()
        });
        others.push(v1::RunSpec {
            skip_up_to_date: true,
            ..plain.clone()
        });
        others.push(v1::RunSpec {
            labels: [("team".to_owned(), "x".to_owned())].into(),
            ..plain.clone()
        });
        others.push(plain);
        let mut prints: Vec<String> = others.iter().map(print).collect();
        prints.sort();
        prints.dedup();
        assert_eq!(prints.len(), others.len());
    }
}
