//! Writes a value in its canonical form.

use std::fmt::{self, Display, Formatter, Write};

use serde::ser::{Serialize, Serializer};

use super::{Integer, Json};

impl Display for Json {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => value.fmt(f),
            Json::Integer(Integer(value)) => value.fmt(f),
            Json::Text(text) => write_text(f, text),
            Json::Array(items) => write_list(f, '[', items, ']', |f, item| item.fmt(f)),
            Json::Object(members) => write_list(f, '{', members, '}', |f, (key, value)| {
                write_text(f, key)?;
                f.write_char(':')?;
                value.fmt(f)
            }),
        }
    }
}

fn write_list<T>(
    f: &mut Formatter<'_>,
    open: char,
    items: impl IntoIterator<Item = T>,
    close: char,
    write: impl Fn(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    f.write_char(open)?;
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            f.write_char(',')?;
        }
        write(f, item)?;
    }
    f.write_char(close)
}

pub(super) fn write_text(f: &mut impl Write, text: &str) -> fmt::Result {
    f.write_char('"')?;
    let mut plain = 0;
    for (at, byte) in text
        .bytes()
        .enumerate()
        .filter(|&(_, byte)| needs_escape(byte))
    {
        f.write_str(&text[plain..at])?;
        write_escape(f, byte)?;
        plain = at + 1;
    }
    f.write_str(&text[plain..])?;
    f.write_char('"')
}

fn needs_escape(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

fn write_escape(f: &mut impl Write, byte: u8) -> fmt::Result {
    match byte {
        b'"' => f.write_str("\\\""),
        b'\\' => f.write_str("\\\\"),
        0x08 => f.write_str("\\b"),
        0x0c => f.write_str("\\f"),
        b'\n' => f.write_str("\\n"),
        b'\r' => f.write_str("\\r"),
        b'\t' => f.write_str("\\t"),
        _ => write!(f, "\\u{byte:04x}"),
    }
}

/// Lets a JSON value be a field of a larger value that is serialized with serde.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Integer(Integer(value)) => match u64::try_from(*value) {
                Ok(value) => serializer.serialize_u64(value),
                Err(_) => serializer.serialize_i128(*value),
            },
            Json::Text(text) => serializer.serialize_str(text),
            Json::Array(items) => serializer.collect_seq(items),
            Json::Object(members) => serializer.collect_map(members),
        }
    }
}
