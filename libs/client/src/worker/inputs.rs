//! The inputs of an attempt.

use servo_proto::json::{self, BadJson};
use servo_proto::v1 as pb;
use sha2::{Digest as _, Sha256};

use super::attempt::Attempt;

/// Why the list of inputs cannot be read. The attempt fails with category INPUT.
#[derive(Debug, thiserror::Error)]
pub enum InputsError {
    #[error("inputs at {0} cannot be read: only file:// is supported")]
    UnknownScheme(String),
    #[error("inputs at {0} cannot be read: {1}")]
    Unreadable(String, std::io::Error),
    #[error("inputs at {0} do not match the digest in the envelope")]
    WrongDigest(String),
    #[error("inputs at {0} are malformed: {1}")]
    Malformed(String, String),
}

impl Attempt {
    /// The versions to read: from the envelope, or from the file that it refers to when there are
    /// many.
    pub async fn inputs(&self) -> Result<Vec<pb::ResolvedInput>, InputsError> {
        let envelope = self.envelope();
        let uri = &envelope.inputs_uri;
        if uri.is_empty() {
            return Ok(envelope.inputs.clone());
        }
        let path = uri
            .strip_prefix("file://")
            .ok_or_else(|| InputsError::UnknownScheme(uri.clone()))?;
        let bytes = tokio::fs::read(path)
            .await
            .map_err(|error| InputsError::Unreadable(uri.clone(), error))?;
        read(&bytes, &envelope.inputs_digest, uri)
    }
}

fn read(bytes: &[u8], digest: &str, uri: &str) -> Result<Vec<pb::ResolvedInput>, InputsError> {
    let found: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if found != digest {
        return Err(InputsError::WrongDigest(uri.to_owned()));
    }
    let malformed = |fault: BadJson| InputsError::Malformed(uri.to_owned(), fault.to_string());
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| json::from_json("ResolvedInput", line).map_err(malformed))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        r#"{"assetKey":"n/a","versions":[{"partitionKey":"k=s:1","uri":"file:///x"}]}"#;
    // sha256sum of the line above with a line feed.
    const DIGEST: &str = "b922dd670125a540d3ad11b71a52d05a4bde1c339d2089f29aa04db3ce7f42a4";

    #[test]
    fn input_list_must_match_its_digest() {
        let inputs = read(format!("{LINE}\n").as_bytes(), DIGEST, "file:///list").unwrap();
        assert_eq!(inputs.len(), 1);
        assert_eq!(
            (
                inputs[0].asset_key.as_str(),
                inputs[0].versions[0].uri.as_str()
            ),
            ("n/a", "file:///x")
        );
        let other = read(LINE.as_bytes(), DIGEST, "file:///list").unwrap_err();
        assert!(matches!(other, InputsError::WrongDigest(_)), "{other}");
    }
}
