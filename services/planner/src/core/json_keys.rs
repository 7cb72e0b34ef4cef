//! Rejects JSON in which an object repeats a key, because readers disagree about which of the two
//! values counts.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Any JSON value without repeated keys; the value itself is discarded.
pub(crate) struct JsonWithUniqueKeys;

impl<'de> Deserialize<'de> for JsonWithUniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonWithUniqueKeys, D::Error> {
        deserializer.deserialize_any(JsonWithUniqueKeys)
    }
}

impl<'de> Visitor<'de> for JsonWithUniqueKeys {
    type Value = JsonWithUniqueKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<JsonWithUniqueKeys, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<JsonWithUniqueKeys, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<JsonWithUniqueKeys, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<JsonWithUniqueKeys, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<JsonWithUniqueKeys, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<JsonWithUniqueKeys, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonWithUniqueKeys, A::Error> {
        while items.next_element::<JsonWithUniqueKeys>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<JsonWithUniqueKeys, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            entries.next_value::<JsonWithUniqueKeys>()?;
            if let Some(key) = keys.replace(key) {
                return Err(A::Error::custom(format!("the key `{key}` appears twice")));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, fault: &str) {
        let read = serde_json::from_str::<JsonWithUniqueKeys>(text)
            .map(drop)
            .map_err(|error| error.to_string());
        match fault {
            "" => assert_eq!(read, Ok(())),
            fault => assert!(
                read.clone().is_err_and(|message| message.contains(fault)),
                "{read:?}"
            ),
        }
    }

    #[test]
    fn repeated_keys_are_rejected_in_every_object() {
        check(
            r#"{"a": {"a": [1, -1, 1.5e3, "x", null, true]}, "b": {}}"#,
            "",
        );
        check("7", "");
        check(r#"{"a": 1, "b": 2, "a": 1}"#, "`a` appears twice");
        check(r#"[{"b": {"a": 1, "a": 2}}]"#, "`a` appears twice");
        check(r#"{"\u0061": 1, "a": 2}"#, "`a` appears twice");
        check("{", "EOF");
    }
}
