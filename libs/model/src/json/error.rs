//! Why a value has no canonical form, and where.

use std::fmt;

use crate::limits::JSON_DEPTH_MAX;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}")]
pub struct JsonError {
    pub place: Place,
    pub fault: Fault,
}

/// Where a fault is: in a text by byte, in a value by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Byte(usize),
    /// The way from the root, such as `.tasks[3].priority`; empty for the root itself.
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
    #[error("the key {0:?} stands twice in one object; keep one")]
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
            place: Place::Byte(at),
            fault,
        }
    }

    /// Names one more step on the way to the fault, from the inside out.
    pub(super) fn inside(mut self, step: impl fmt::Display) -> JsonError {
        if let Place::Path(path) = &mut self.place {
            *path = format!("{step}{path}");
        }
        self
    }
}

impl From<Fault> for JsonError {
    fn from(fault: Fault) -> JsonError {
        JsonError {
            place: Place::Path(String::new()),
            fault,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Byte(at) => write!(f, "at byte {at}"),
            Place::Path(path) if path.is_empty() => f.write_str("at the root"),
            Place::Path(path) => write!(f, "at {path}"),
        }
    }
}
