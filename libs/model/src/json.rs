//! Canonical JSON: one spelling per value, for everything that is hashed or signed.
//!
//! Keys are sorted by code point, there is no white space, and numbers are integers from `i64::MIN`
//! to `u64::MAX`. A float in any spelling, a repeated key, a lone surrogate and nesting beyond
//! [`JSON_DEPTH_MAX`](crate::limits::JSON_DEPTH_MAX) are errors, because two languages would
//! disagree about them.
//!
//! ```
//! # use servo_model::json::Json;
//! let value = Json::parse(r#"{ "b": [1, 2], "a": null }"#)?;
//! assert_eq!(value.to_string(), r#"{"a":null,"b":[1,2]}"#);
//! assert!(Json::parse("1.0").is_err());
//! # Ok::<(), servo_model::json::JsonError>(())
//! ```

mod collect;
mod error;
mod parse;
mod serialize;
mod string;
mod write;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

pub use error::{Fault, JsonError, Location};

/// A value that has a canonical form. `Display` writes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Json {
    Null,
    Bool(bool),
    Integer(Integer),
    Text(String),
    Array(Vec<Json>),
    /// Rust orders strings by their UTF-8 bytes, which is the order of code points.
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// Parses JSON text. White space and the order of keys do not matter; a value without a
    /// canonical form is an error.
    pub fn parse(text: &str) -> Result<Json, JsonError> {
        parse::parse(text)
    }
}

/// The canonical text of any value that serde can describe.
pub fn to_canonical<T: Serialize + ?Sized>(value: &T) -> Result<String, JsonError> {
    serialize::to_canonical(value)
}

/// A whole number from `i64::MIN` to `u64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Integer(i128);

impl Integer {
    /// `None` outside the range.
    pub fn new(value: i128) -> Option<Integer> {
        (i128::from(i64::MIN)..=i128::from(u64::MAX))
            .contains(&value)
            .then_some(Integer(value))
    }

    pub const fn get(self) -> i128 {
        self.0
    }
}

impl From<i64> for Integer {
    fn from(value: i64) -> Integer {
        Integer(value.into())
    }
}

impl From<u64> for Integer {
    fn from(value: u64) -> Integer {
        Integer(value.into())
    }
}
