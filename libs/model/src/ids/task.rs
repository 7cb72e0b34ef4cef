//! A task's id: the hash of its key ([`TaskId::of`]), short enough for a URL.

use std::fmt;
use std::str::FromStr;

use super::IdError;
use crate::hash::Base32Prefix;
use crate::text::written_as_text;

const PREFIX: &str = "task_";
const RULE: &str = "write `task_` and 26 characters of a-z and 2-7";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(Base32Prefix);

impl TaskId {
    pub(crate) const fn from_prefix(prefix: Base32Prefix) -> TaskId {
        TaskId(prefix)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

impl FromStr for TaskId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        text.strip_prefix(PREFIX)
            .and_then(Base32Prefix::parse)
            .map(TaskId)
            .ok_or_else(|| IdError::new("task id", text, RULE))
    }
}

written_as_text!(TaskId);
