//! The wall clock of the shell. The core takes the time as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the current time in seconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs().cast_signed())
}
