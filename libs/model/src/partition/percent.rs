//! Percent-encoding with one spelling per text: everything outside `A-Za-z0-9-._~` as upper-case
//! `%XX`.

use std::fmt;

use data_encoding::HEXUPPER;

pub(super) fn write_encoded(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for byte in text.bytes() {
        if is_plain(byte) {
            write!(f, "{}", char::from(byte))?
        } else {
            write!(f, "%{byte:02X}")?
        }
    }
    Ok(())
}

/// `None` unless encoding the result gives this text again.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let (byte, tail) = if *first == b'%' {
            decode_byte(tail)?
        } else {
            (*first, tail)
        };
        if is_plain(byte) == (*first == b'%') {
            return None;
        }
        bytes.push(byte);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

fn decode_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, tail) = text.split_at_checked(2)?;
    let byte = HEXUPPER.decode(digits).ok()?;
    Some((byte[0], tail))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}
