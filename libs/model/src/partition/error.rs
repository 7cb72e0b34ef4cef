//! Why a partition key is rejected.

use crate::limits::{NAME_BYTES_MAX, PARTITION_DIMENSIONS_MAX, PARTITION_KEY_BYTES_MAX};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartitionKeyError {
    #[error("a partition key has at least one dimension, written name=tag:value")]
    Empty,
    #[error("`{0}` is not a dimension: write name=tag:value")]
    NotADimension(String),
    #[error(
        "the dimension name `{0}` is refused: write 1 to {NAME_BYTES_MAX} lower-case letters, digits and `_`, \
         not beginning with a digit"
    )]
    BadName(String),
    #[error("the dimension name `_map` is reserved for mapped tasks; choose another")]
    Reserved,
    #[error("the dimension `{0}` appears twice; keep one")]
    Repeated(String),
    #[error("dimensions are sorted by name: write `{second}` before `{first}`")]
    Unsorted { first: String, second: String },
    #[error("the value of dimension `{name}` is refused: {fault}")]
    BadValue { name: String, fault: ValueFault },
    #[error(
        "a partition key has at most {PARTITION_DIMENSIONS_MAX} dimensions and {PARTITION_KEY_BYTES_MAX} bytes; \
         use shorter values"
    )]
    TooLarge,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    #[error(
        "`{0}` is not a tag; the tags are s (string), i (integer), b (bool), d (date) and t (UTC instant)"
    )]
    UnknownTag(String),
    #[error(
        "`{0}` is not an encoded string: write %XX, in upper case, for every byte outside A-Za-z0-9-._~"
    )]
    NotEncoded(String),
    #[error(
        "`{0}` is not an integer: write decimal digits without leading zeros, from -2^63 to 2^63-1"
    )]
    NotAnInteger(String),
    #[error("`{0}` is not a bool: write true or false")]
    NotABool(String),
    #[error("`{0}` is not a date: write YYYY-MM-DD, from year 0001 on")]
    NotADate(String),
    #[error(
        "`{0}` is not a UTC instant: write YYYY-MM-DDThh:mm:ssZ in whole seconds, from year 0001 on"
    )]
    NotAnInstant(String),
}
