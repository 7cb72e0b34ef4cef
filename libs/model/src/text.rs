//! Types with one text form: `Debug` and serde use that text.

/// Implements `Debug` and `Serialize` with `Display`, and `Deserialize` with `FromStr`.
macro_rules! written_as_text {
    ($name:ty) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text =
                    <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use written_as_text;

/// Shortens rejected input for an error message: long enough to find it, never a page.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARS_MAX: usize = 64;
    if text.chars().count() <= CHARS_MAX {
        return text.to_owned();
    }
    let head: String = text.chars().take(CHARS_MAX).collect();
    format!("{head}…")
}

/// A text that is not an id of the expected kind, with the rule that it violates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a {kind}: {rule}")]
pub struct IdError {
    pub kind: &'static str,
    pub given: String,
    pub rule: &'static str,
}

impl IdError {
    pub(crate) fn new(kind: &'static str, given: &str, rule: &'static str) -> IdError {
        IdError {
            kind,
            given: excerpt(given),
            rule,
        }
    }
}
