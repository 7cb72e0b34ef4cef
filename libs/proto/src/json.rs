//! Messages as JSON, by the mapping that protobuf defines: camel case names, enums by name, times
//! as text.

use prost::Message;
use prost_reflect::{DeserializeOptions, DynamicMessage, MessageDescriptor, ReflectMessage};

/// Why a text is not a message of its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not JSON of servo.v1.{message}: {fault}")]
pub struct BadJson {
    message: String,
    fault: String,
}

/// Parses the message of servo.v1 named `message`. An unknown field is an error. Empty input is a
/// message without fields.
pub fn from_json<M: Message + Default>(message: &str, text: &[u8]) -> Result<M, BadJson> {
    let bad = |fault: String| BadJson {
        message: message.to_owned(),
        fault,
    };
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(M::default());
    }
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = DynamicMessage::deserialize_with_options(descriptor(message), &mut json, &options)
        .map_err(|error| bad(error.to_string()))?;
    json.end().map_err(|error| bad(error.to_string()))?;
    read.transcode_to().map_err(|error| bad(error.to_string()))
}

/// Writes the message of servo.v1 named `message`.
pub fn to_json<M: Message>(message: &str, value: &M) -> Result<String, BadJson> {
    let bad = |fault: String| BadJson {
        message: message.to_owned(),
        fault,
    };
    let mut written = DynamicMessage::new(descriptor(message));
    written
        .merge(value.encode_to_vec().as_slice())
        .map_err(|error| bad(error.to_string()))?;
    debug_assert_eq!(written.descriptor().name(), message);
    serde_json::to_string(&written).map_err(|error| bad(error.to_string()))
}

fn descriptor(message: &str) -> MessageDescriptor {
    let full = format!("servo.v1.{message}");
    crate::descriptors()
        .get_message_by_name(&full)
        .expect("callers pass the name of a message of servo.v1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1;

    #[test]
    fn names_follow_the_protobuf_json_mapping() {
        let text =
            br#"{"runId":"run_x","outcome":"OUTCOME_SUCCEEDED","outputs":[{"byteSize":"7"}]}"#;
        let read: v1::FinishAttemptRequest = from_json("FinishAttemptRequest", text).unwrap();
        assert_eq!(
            (read.run_id.as_str(), read.outcome()),
            ("run_x", v1::Outcome::Succeeded)
        );
        assert_eq!(read.outputs[0].byte_size, 7);
        let written = to_json("FinishAttemptRequest", &read).unwrap();
        let again: v1::FinishAttemptRequest =
            from_json("FinishAttemptRequest", written.as_bytes()).unwrap();
        assert_eq!(again, read);
    }

    #[test]
    fn errors_name_the_location() {
        for (text, word) in [
            (&br#"{"outcme":"x"}"#[..], "outcme"),
            (br#"{"runId":7}"#, "line 1"),
            (br#"{"outcome":"GOOD"}"#, "GOOD"),
            (br#"{"runId":"a"} more"#, "trailing"),
            (b"[]", "line 1"),
            (b"{", "EOF"),
        ] {
            let error =
                from_json::<v1::FinishAttemptRequest>("FinishAttemptRequest", text).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
        assert!(from_json::<v1::FinishAttemptRequest>("FinishAttemptRequest", b" \n").is_ok());
    }
}
