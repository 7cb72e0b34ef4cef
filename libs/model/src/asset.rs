//! The name of an asset: `namespace/name` for machines, `namespace.name` for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Serialize, Serializer};

use crate::limits::NAME_BYTES_MAX;
use crate::text::excerpt;

/// `Display` is the form for people; [`AssetKey::canonical`] is the form to store, hash and
/// compare.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssetKey {
    namespace: String,
    name: String,
}

impl AssetKey {
    pub fn new(namespace: &str, name: &str) -> Result<AssetKey, AssetKeyError> {
        check_name("namespace", namespace)?;
        check_name("name", name)?;
        Ok(AssetKey {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Parses `namespace/name`.
    pub fn parse_canonical(text: &str) -> Result<AssetKey, AssetKeyError> {
        AssetKey::split(text, '/')
    }

    /// Parses `namespace.name`, as people type it.
    pub fn parse_display(text: &str) -> Result<AssetKey, AssetKeyError> {
        AssetKey::split(text, '.')
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn canonical(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn split(text: &str, separator: char) -> Result<AssetKey, AssetKeyError> {
        let missing = || AssetKeyError::NoSeparator {
            given: excerpt(text),
            separator,
        };
        let (namespace, name) = text.split_once(separator).ok_or_else(missing)?;
        AssetKey::new(namespace, name)
    }
}

impl fmt::Display for AssetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.namespace, self.name)
    }
}

impl Serialize for AssetKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.canonical())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssetKeyError {
    #[error("`{given}` is not an asset key: write namespace{separator}name")]
    NoSeparator { given: String, separator: char },
    #[error(
        "the {part} `{given}` of an asset is refused: write 1 to {NAME_BYTES_MAX} lower-case letters, digits \
         and `_`, not beginning with a digit"
    )]
    BadName { part: &'static str, given: String },
    #[error(
        "the YAML name `{given}` is refused: write 1 to {NAME_BYTES_MAX} lower-case letters, digits and `-`, \
         not beginning with a digit"
    )]
    BadYamlName { given: String },
    #[error(
        "the YAML name `{given}` means the asset name `{name}`, which is taken; rename one of the two"
    )]
    NameTaken { given: String, name: String },
}

/// Maps each YAML name to its asset name by replacing `-` with `_`. `taken` holds the names that
/// the namespace already has.
pub fn asset_names<'a>(
    yaml_names: impl IntoIterator<Item = &'a str>,
    taken: &BTreeSet<String>,
) -> Result<BTreeMap<&'a str, String>, AssetKeyError> {
    let mut names = BTreeMap::new();
    for given in yaml_names {
        let name = asset_name(given)?;
        if taken.contains(&name) || names.contains_key(given) {
            return Err(AssetKeyError::NameTaken {
                given: given.to_owned(),
                name,
            });
        }
        names.insert(given, name);
    }
    Ok(names)
}

// Two different YAML names never collide, because `_` is not allowed in them.
fn asset_name(given: &str) -> Result<String, AssetKeyError> {
    let name = given.replace('-', "_");
    if !given.contains('_') && is_name(&name) {
        Ok(name)
    } else {
        Err(AssetKeyError::BadYamlName {
            given: excerpt(given),
        })
    }
}

fn check_name(part: &'static str, given: &str) -> Result<(), AssetKeyError> {
    if is_name(given) {
        Ok(())
    } else {
        Err(AssetKeyError::BadName {
            part,
            given: excerpt(given),
        })
    }
}

/// Whether the text is valid as a part of an asset key or as the name of a partition dimension.
pub(crate) fn is_name(text: &str) -> bool {
    let inner = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_');
    text.len() <= NAME_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_forms_of_one_key() {
        let key = AssetKey::new("raw", "events_2").unwrap();
        assert_eq!(key.to_string(), "raw.events_2");
        assert_eq!(key.canonical(), "raw/events_2");
        assert_eq!(AssetKey::parse_canonical("raw/events_2"), Ok(key.clone()));
        assert_eq!(AssetKey::parse_display("raw.events_2"), Ok(key));
    }

    #[test]
    fn other_spellings_are_rejected() {
        for text in [
            "raw",
            "raw.events",
            "/events",
            "raw/",
            "raw/2nd",
            "Raw/events",
            "raw/a/b",
            "raw/a-b",
            "raw/é",
        ] {
            assert!(AssetKey::parse_canonical(text).is_err(), "{text}");
        }
        assert!(AssetKey::new("raw", &"a".repeat(NAME_BYTES_MAX)).is_ok());
        assert!(AssetKey::new("raw", &"a".repeat(NAME_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn yaml_names_become_asset_names() {
        let names = asset_names(["load-prices", "check"], &BTreeSet::new()).unwrap();
        assert_eq!(names["load-prices"], "load_prices");
        assert_eq!(names["check"], "check");
    }

    #[test]
    fn yaml_names_are_refused_when_they_collide_or_cannot_be_names() {
        let taken = BTreeSet::from(["load_prices".to_owned()]);
        let collision = asset_names(["load-prices"], &taken).unwrap_err();
        assert_eq!(
            collision,
            AssetKeyError::NameTaken {
                given: "load-prices".into(),
                name: "load_prices".into()
            }
        );
        assert!(asset_names(["a-b", "a-b"], &BTreeSet::new()).is_err());
        for name in ["2nd-load", "load_prices", "Load", ""] {
            let refused = asset_names([name], &BTreeSet::new()).unwrap_err();
            assert_eq!(refused, AssetKeyError::BadYamlName { given: name.into() });
        }
    }

    proptest! {
        #[test]
        fn keys_sort_like_their_canonical_text(
            a in ("[a-z_][a-z0-9_]{0,2}", "[a-z_][a-z0-9_]{0,2}"),
            b in ("[a-z_][a-z0-9_]{0,2}", "[a-z_][a-z0-9_]{0,2}"),
        ) {
            let (a, b) = (AssetKey::new(&a.0, &a.1).unwrap(), AssetKey::new(&b.0, &b.1).unwrap());
            prop_assert_eq!(a.cmp(&b), a.canonical().cmp(&b.canonical()));
        }
    }
}
