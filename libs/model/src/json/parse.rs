//! A strict parser. `serde_json` is not used because it accepts floats, repeated keys and `-0`, and
//! because its behaviour changes with feature flags.

use std::collections::BTreeMap;

use super::{Fault, Integer, Json, JsonError};
use crate::limits::JSON_DEPTH_MAX;

pub(super) fn parse(text: &str) -> Result<Json, JsonError> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.unexpected("the end of the text")),
    }
}

/// A text and the position of the parser in it; `at` is always on a character boundary.
pub(super) struct Reader<'a> {
    text: &'a str,
    pub(super) at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.open(depth)?;
        let mut members = BTreeMap::new();
        if self.take(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.member(depth, &mut members)?;
            if !self.another(b'}', "`,` or `}`")? {
                return Ok(Json::Object(members));
            }
        }
    }

    fn member(
        &mut self,
        depth: usize,
        members: &mut BTreeMap<String, Json>,
    ) -> Result<(), JsonError> {
        self.skip_space();
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a key in quotes"));
        }
        let key = self.string()?;
        if members.contains_key(&key) {
            return Err(JsonError::at_byte(start, Fault::RepeatedKey(key)));
        }
        if !self.take(b':') {
            return Err(self.unexpected("`:`"));
        }
        let value = self.value(depth + 1)?;
        members.insert(key, value);
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.open(depth)?;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if !self.another(b']', "`,` or `]`")? {
                return Ok(Json::Array(items));
            }
        }
    }

    fn open(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth >= JSON_DEPTH_MAX {
            return Err(self.fault(Fault::TooDeep));
        }
        self.at += 1;
        Ok(())
    }

    /// Returns true after a comma (another item follows) and false after the closing bracket.
    fn another(&mut self, close: u8, expected: &'static str) -> Result<bool, JsonError> {
        if self.take(b',') {
            return Ok(true);
        }
        if self.take(close) {
            return Ok(false);
        }
        Err(self.unexpected(expected))
    }

    fn word(&mut self, word: &'static str, value: Json) -> Result<Json, JsonError> {
        if !self.rest().starts_with(word) {
            return Err(self.unexpected("a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let digits = self.at;
        self.skip(|byte| byte.is_ascii_digit());
        if self.at == digits {
            return Err(self.unexpected("a digit"));
        }
        let fraction = matches!(self.peek(), Some(b'.' | b'e' | b'E'));
        integer(&self.text[start..self.at], fraction)
            .map_err(|fault| JsonError::at_byte(start, fault))
    }

    /// Skips white space and consumes this byte if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        self.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    }

    fn skip(&mut self, class: impl Fn(u8) -> bool) {
        self.at += self.rest().bytes().take_while(|&byte| class(byte)).count();
    }
}

impl<'a> Reader<'a> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn fault(&self, fault: Fault) -> JsonError {
        JsonError::at_byte(self.at, fault)
    }

    pub(super) fn unexpected(&self, expected: &'static str) -> JsonError {
        self.fault(match self.rest().chars().next() {
            Some(found) => Fault::Unexpected { expected, found },
            None => Fault::Ends { expected },
        })
    }
}

fn integer(text: &str, fraction: bool) -> Result<Json, Fault> {
    let digits = text.trim_start_matches('-');
    if digits.len() > 1 && digits.starts_with('0') {
        return Err(Fault::LeadingZero);
    }
    if fraction {
        return Err(Fault::Float);
    }
    if text == "-0" {
        return Err(Fault::NegativeZero);
    }
    text.parse()
        .ok()
        .and_then(Integer::new)
        .map(Json::Integer)
        .ok_or(Fault::IntegerRange)
}
