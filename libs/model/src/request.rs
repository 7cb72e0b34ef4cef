//! The parts of a run request that determine the run. Two requests under one run key are the same
//! request exactly when their fingerprints are equal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::hash::Digest;
use crate::ids::IdError;
use crate::json::{JsonError, to_canonical};
use crate::partition::PartitionKey;
use crate::text::written_as_text;

/// Sets and maps, because the order in which a user lists things does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RequestShape {
    /// Selection expressions as given, such as `+raw.events`.
    pub selection: BTreeSet<String>,
    pub partitions: BTreeSet<PartitionKey>,
    pub labels: BTreeMap<String, String>,
    /// The digest of the configuration's bytes rather than canonical JSON, because users may write
    /// floats.
    pub config_sha256: Option<Digest>,
}

impl RequestShape {
    pub fn fingerprint(&self) -> Result<RequestFingerprint, JsonError> {
        Ok(RequestFingerprint(Digest::of(to_canonical(self)?)))
    }
}

/// Printed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestFingerprint(Digest);

impl RequestFingerprint {
    pub const fn from_digest(digest: Digest) -> RequestFingerprint {
        RequestFingerprint(digest)
    }

    pub const fn digest(&self) -> &Digest {
        &self.0
    }
}

impl fmt::Display for RequestFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RequestFingerprint {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        text.parse().map(RequestFingerprint)
    }
}

written_as_text!(RequestFingerprint);

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(selection: &[&str], config: Option<&str>) -> RequestShape {
        RequestShape {
            selection: selection.iter().map(ToString::to_string).collect(),
            partitions: BTreeSet::from(["day=d:2025-01-01".parse().unwrap()]),
            labels: BTreeMap::from([("team".into(), "core".into())]),
            config_sha256: config.map(Digest::of),
        }
    }

    #[test]
    fn is_the_hash_of_the_canonical_request() {
        let canonical = concat!(
            r#"{"config_sha256":null,"labels":{"team":"core"},"#,
            r#""partitions":["day=d:2025-01-01"],"selection":["+raw.a","raw.b"]}"#
        );
        let fingerprint = shape(&["raw.b", "+raw.a"], None).fingerprint().unwrap();
        assert_eq!(fingerprint.digest(), &Digest::of(canonical));
        assert_eq!(fingerprint.to_string().len(), 64);
    }

    #[test]
    fn configuration_may_contain_values_without_a_canonical_form() {
        let (one, other) = (
            shape(&[], Some("rate: 0.5")),
            shape(&[], Some("rate: 0.50")),
        );
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_ne!(one.fingerprint(), shape(&[], None).fingerprint());
    }
}
