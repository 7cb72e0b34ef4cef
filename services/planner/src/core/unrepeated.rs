//! JSON in which no object names a key twice: readers disagree about which of the two counts.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Any JSON, looked at and forgotten.
pub(crate) struct Unrepeated;

impl<'de> Deserialize<'de> for Unrepeated {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unrepeated, D::Error> {
        deserializer.deserialize_any(Unrepeated)
    }
}

impl<'de> Visitor<'de> for Unrepeated {
    type Value = Unrepeated;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Unrepeated, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Unrepeated, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Unrepeated, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Unrepeated, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Unrepeated, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Unrepeated, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unrepeated, A::Error> {
        while items.next_element::<Unrepeated>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Unrepeated, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            entries.next_value::<Unrepeated>()?;
            if let Some(key) = keys.replace(key) {
                return Err(A::Error::custom(format!(
                    "the key `{key}` stands there twice"
                )));
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
        let read = serde_json::from_str::<Unrepeated>(text)
            .map(drop)
            .map_err(|error| error.to_string());
        match fault {
            "" => assert_eq!(read, Ok(())),
            fault => assert!(
                read.clone().is_err_and(|told| told.contains(fault)),
                "{read:?}"
            ),
        }
    }

    #[test]
    fn a_key_stands_once_in_each_object() {
        check(
            r#"{"a": {"a": [1, -1, 1.5e3, "x", null, true]}, "b": {}}"#,
            "",
        );
        check("7", "");
        check(r#"{"a": 1, "b": 2, "a": 1}"#, "`a` stands there twice");
        check(r#"[{"b": {"a": 1, "a": 2}}]"#, "`a` stands there twice");
        check(r#"{"\u0061": 1, "a": 2}"#, "`a` stands there twice");
        check("{", "EOF");
    }
}
