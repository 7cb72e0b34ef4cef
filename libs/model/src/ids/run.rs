//! A run's id: the keyed hash of its run key ([`RunId::derive`]), so that the same request finds
//! the same run.

use std::fmt;
use std::str::FromStr;

use super::IdError;
use crate::event::Stream;
use crate::hash::{base32, base32_id};
use crate::ledger::ShardId;
use crate::text::written_as_text;

const PREFIX: &str = "run_";
const RULE: &str = "write `run_` and 26 characters of a-z and 2-7";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId([u8; 16]);

impl RunId {
    pub const fn from_bytes(bytes: [u8; 16]) -> RunId {
        RunId(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The shard of the execution stream that holds this run's events.
    pub const fn shard(&self) -> ShardId {
        ShardId::of_first_byte(Stream::Execution, self.0[0])
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", base32(&self.0))
    }
}

impl FromStr for RunId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        text.strip_prefix(PREFIX)
            .and_then(base32_id)
            .map(RunId)
            .ok_or_else(|| IdError::new("run id", text, RULE))
    }
}

written_as_text!(RunId);
