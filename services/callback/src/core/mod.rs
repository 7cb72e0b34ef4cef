//! Decisions without I/O: which calls are signed correctly, which outcomes are valid, which outputs
//! are committed, and which task an attempt belongs to.

mod attempts;
mod commit;
mod signatures;
mod validate_outcome;

pub use attempts::{Attempts, TaskAttempts};
pub use commit::{MARKER, NotCommitted, OutsideFolder, check_marker, output_folder};
pub use signatures::{AttemptNames, PresentedPaths, SignatureError, SignatureVerifier};
pub use validate_outcome::{check_attempt, check_outcome, check_time, short_text, truncate};
