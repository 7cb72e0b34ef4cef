//! Parses one string: escapes, surrogate pairs and plain characters.

use super::parse::Reader;
use super::{Fault, JsonError};

impl Reader<'_> {
    /// Parses from the opening quote to the closing one.
    pub(super) fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let plain = self
                .rest()
                .bytes()
                .take_while(|&byte| is_plain(byte))
                .count();
            text.push_str(&self.rest()[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.fault(Fault::ControlCharacter)),
                None => return Err(self.unexpected("`\"`")),
            }
        }
        self.at += 1;
        Ok(text)
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        self.at += 1;
        let letter = self.peek();
        self.at += usize::from(letter.is_some_and(|byte| byte.is_ascii()));
        Ok(match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.code_point(start),
            _ => return Err(JsonError::at_byte(start, Fault::BadEscape)),
        })
    }

    /// The character of one `\u` escape, or of two that form a surrogate pair.
    fn code_point(&mut self, start: usize) -> Result<char, JsonError> {
        let mut units = vec![self.hex(start)?];
        if is_high_surrogate(units[0]) && self.rest().starts_with("\\u") {
            self.at += 2;
            units.push(self.hex(start)?);
        }
        let mut characters = char::decode_utf16(units);
        match (characters.next(), characters.next()) {
            (Some(Ok(character)), None) => Ok(character),
            _ => Err(JsonError::at_byte(start, Fault::LoneSurrogate)),
        }
    }

    fn hex(&mut self, start: usize) -> Result<u16, JsonError> {
        let unit = self
            .rest()
            .get(..4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u16::from_str_radix(digits, 16).ok())
            .ok_or_else(|| JsonError::at_byte(start, Fault::BadEscape))?;
        self.at += 4;
        Ok(unit)
    }
}

fn is_plain(byte: u8) -> bool {
    byte != b'"' && byte != b'\\' && byte >= b' '
}

fn is_high_surrogate(unit: u16) -> bool {
    (0xd800..0xdc00).contains(&unit)
}
