//! One typed value of a dimension.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;

use super::ValueFault;
use super::percent;
use crate::coded_enum::coded_enum;
use crate::text::excerpt;

coded_enum! {
    /// The type of a value: its tag in keys.
    ValueKind {
        /// Tag `s`.
        Text = 1, "STRING";
        /// Tag `i`.
        Integer = 2, "INTEGER";
        /// Tag `b`.
        Bool = 3, "BOOL";
        /// Tag `d`.
        Date = 4, "DATE";
        /// Tag `t`.
        Instant = 5, "INSTANT";
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartitionValue {
    Text(String),
    Integer(i64),
    Bool(bool),
    /// From year 0001 on, because some calendar libraries have no earlier year.
    Date(Date),
    /// In whole seconds, because a fraction could be spelled in many ways.
    Instant(Timestamp),
}

impl PartitionValue {
    /// Parses a value without its tag, as people and manifests write it. Strings are not
    /// percent-encoded there.
    pub fn from_text(kind: ValueKind, text: &str) -> Result<PartitionValue, ValueFault> {
        match kind {
            ValueKind::Text => Ok(PartitionValue::Text(text.to_owned())),
            ValueKind::Integer => PartitionValue::parse("i", text),
            ValueKind::Bool => PartitionValue::parse("b", text),
            ValueKind::Date => PartitionValue::parse("d", text),
            ValueKind::Instant => PartitionValue::parse("t", text),
        }
    }

    pub fn kind(&self) -> ValueKind {
        match self {
            PartitionValue::Text(_) => ValueKind::Text,
            PartitionValue::Integer(_) => ValueKind::Integer,
            PartitionValue::Bool(_) => ValueKind::Bool,
            PartitionValue::Date(_) => ValueKind::Date,
            PartitionValue::Instant(_) => ValueKind::Instant,
        }
    }

    /// Parses the text on both sides of the first `:`.
    pub(super) fn parse(tag: &str, text: &str) -> Result<PartitionValue, ValueFault> {
        let (value, fault): (Option<PartitionValue>, fn(String) -> ValueFault) = match tag {
            "s" => (
                percent::decode(text).map(PartitionValue::Text),
                ValueFault::NotEncoded,
            ),
            "i" => (
                text.parse().ok().map(PartitionValue::Integer),
                ValueFault::NotAnInteger,
            ),
            "b" => (
                text.parse().ok().map(PartitionValue::Bool),
                ValueFault::NotABool,
            ),
            "d" => (
                text.parse().ok().map(PartitionValue::Date),
                ValueFault::NotADate,
            ),
            "t" => (
                text.parse().ok().map(PartitionValue::Instant),
                ValueFault::NotAnInstant,
            ),
            _ => return Err(ValueFault::UnknownTag(excerpt(tag))),
        };
        value
            .filter(|value| value.check().is_ok() && value.is_written(tag, text))
            .ok_or_else(|| fault(excerpt(text)))
    }

    /// Rejects values that the Rust types can hold but the text form cannot express.
    pub(super) fn check(&self) -> Result<(), ValueFault> {
        match self {
            PartitionValue::Date(date) if date.year() < 1 => {
                Err(ValueFault::NotADate(date.to_string()))
            }
            PartitionValue::Instant(at) if at.subsec_nanosecond() != 0 || utc_year(*at) < 1 => {
                Err(ValueFault::NotAnInstant(at.to_string()))
            }
            _ => Ok(()),
        }
    }

    // Rejects other spellings, because the parsers above also accept `+1`, `20250101` and offsets
    // other than UTC.
    fn is_written(&self, tag: &str, text: &str) -> bool {
        self.to_string().split_once(':') == Some((tag, text))
    }
}

impl fmt::Display for PartitionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartitionValue::Text(text) => {
                f.write_str("s:")?;
                percent::write_encoded(f, text)
            }
            PartitionValue::Integer(value) => write!(f, "i:{value}"),
            PartitionValue::Bool(value) => write!(f, "b:{value}"),
            PartitionValue::Date(date) => write!(f, "d:{date}"),
            PartitionValue::Instant(at) => write!(f, "t:{at}"),
        }
    }
}

fn utc_year(at: Timestamp) -> i16 {
    Offset::UTC.to_datetime(at).year()
}
