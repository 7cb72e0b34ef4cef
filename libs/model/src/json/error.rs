//! Why a value has no canonical form, and where.

use std::fmt;

use crate::limits::JSON_DEPTH_MAX;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {fault}")]
pub struct JsonError {
    pub location: Location,
    pub fault: Fault,
}

/// The location of a fault: a byte of a text, or a path in a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    Byte(usize),
    /// The path from the root, such as `.tasks[3].priority`; empty for the root itself.
    Path(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error(
        "floats have no canonical form; write an integer of a smaller unit or a decimal string"
    )]
    Float,
    #[error("-0 has no canonical form; write 0")]
    NegativeZero,
    #[error(
        "the integer is outside -9223372036854775808 to 18446744073709551615; write it as a string"
    )]
    IntegerRange,
    #[error("numbers have no leading zeros")]
    LeadingZero,
    #[error("the key {0:?} appears twice in one object; keep one")]
    RepeatedKey(String),
    #[error("an object's keys are strings")]
    KeyNotText,
    #[error("a surrogate without its other half is not a character")]
    LoneSurrogate,
    #[error(
        "a backslash must be followed by one of \" \\ / b f n r t, or u and four hexadecimal digits"
    )]
    BadEscape,
    #[error("control characters in strings must be escaped")]
    ControlCharacter,
    #[error("arrays and objects may nest at most {JSON_DEPTH_MAX} deep")]
    TooDeep,
    #[error("expected {expected}, found {found:?}")]
    Unexpected { expected: &'static str, found: char },
    #[error("expected {expected}, but the text ends")]
    Ends { expected: &'static str },
    #[error("{0}")]
    Custom(String),
}

impl JsonError {
    pub(super) fn at_byte(at: usize, fault: Fault) -> JsonError {
        JsonError {
            location: Location::Byte(at),
            fault,
        }
    }

    /// Prepends one step to the path of the fault.
    pub(super) fn inside(mut self, step: impl fmt::Display) -> JsonError {
        if let Location::Path(path) = &mut self.location {
            *path = format!("{step}{path}");
        }
        self
    }
}

impl From<Fault> for JsonError {
    fn from(fault: Fault) -> JsonError {
        JsonError {
            location: Location::Path(String::new()),
            fault,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Byte(at) => write!(f, "at byte {at}"),
            Location::Path(path) if path.is_empty() => f.write_str("at the root"),
            Location::Path(path) => write!(f, "at {path}"),
        }
    }
}
