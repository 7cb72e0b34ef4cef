//! The wall clock of the shell. The core takes the time as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::core::Seconds;

/// Returns the current time in seconds since 1970.
pub(crate) fn now() -> Seconds {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}
