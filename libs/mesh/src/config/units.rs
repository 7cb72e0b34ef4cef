//! Durations written as `250ms`, `5s`, `2m`, `1h`, and sizes written as `64KiB`, `4MiB`.
//!
//! For fields of a service's own section:
//! `#[serde(deserialize_with = "servo_mesh::config::duration")] every: Duration`.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserializer;
use serde::de::{self, Unexpected, Visitor};

/// Reads a duration such as `"250ms"`. A number without a unit is refused.
pub fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let expected = "a duration, a whole number with ms, s, m or h, such as `250ms` or `5s`,";
    deserializer.deserialize_any(Text {
        parse: parse_duration,
        expected,
    })
}

/// Reads a size such as `"4MiB"` in bytes.
pub fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let expected = "a size, a whole number with B, KiB or MiB, such as `64KiB` or `4MiB`,";
    deserializer.deserialize_any(Text {
        parse: parse_size,
        expected,
    })
}

/// Reads a listen address.
pub fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let expected = "an IP address with a port, such as `127.0.0.1:7412` or `[::]:7412`,";
    let address = deserializer.deserialize_any(Text {
        parse: |text| text.parse().ok(),
        expected,
    })?;
    Ok(Some(address))
}

/// A visitor that accepts text which `parse` understands.
struct Text<T> {
    parse: fn(&str) -> Option<T>,
    expected: &'static str,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3600).map(Duration::from_secs),
        _ => None,
    }
}

fn parse_size(text: &str) -> Option<usize> {
    let (number, unit) = split_unit(text)?;
    let scale = match unit {
        "B" => 1,
        "KiB" => 1024,
        "MiB" => 1024 * 1024,
        _ => return None,
    };
    usize::try_from(number).ok()?.checked_mul(scale)
}

fn split_unit(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit_we_know() {
        let check = |text, expected| assert_eq!(parse_duration(text), expected, "{text}");
        check("250ms", Some(Duration::from_millis(250)));
        check("5s", Some(Duration::from_secs(5)));
        check("5 s", Some(Duration::from_secs(5)));
        check("2m", Some(Duration::from_secs(120)));
        check("1h", Some(Duration::from_secs(3600)));
        for wrong in [
            "",
            "5",
            "s",
            "-5s",
            "1.5s",
            "5d",
            "5 seconds",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn sizes_need_a_unit_we_know() {
        let check = |text, expected| assert_eq!(parse_size(text), expected, "{text}");
        check("100B", Some(100));
        check("64KiB", Some(65_536));
        check("4MiB", Some(4_194_304));
        for wrong in ["", "4", "4MB", "4M", "-1B", "18446744073709551615MiB"] {
            check(wrong, None);
        }
    }
}
