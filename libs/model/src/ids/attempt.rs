//! An attempt's id: derived from its dispatch ([`AttemptId::of`]), so that every process that knows
//! the dispatch knows the id.

use std::fmt;
use std::str::FromStr;

use ulid::Ulid;

use super::{IdError, ulids};
use crate::text::written_as_text;

/// Identifies one attempt of one task, and the materialization that it may produce.
///
/// It is the first 16 bytes of the dispatch id's sha256, written like a ULID. It does not sort by
/// time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId([u8; 16]);

impl AttemptId {
    pub const fn from_bytes(bytes: [u8; 16]) -> AttemptId {
        AttemptId(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ulid::from_bytes(self.0).fmt(f)
    }
}

impl FromStr for AttemptId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        ulids::parse(text)
            .map(AttemptId)
            .ok_or_else(|| IdError::new("attempt id", text, ulids::RULE))
    }
}

written_as_text!(AttemptId);
