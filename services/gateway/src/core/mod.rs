//! Decisions of the public door: no async, no clock, no SQL, no randomness.

pub mod door;
pub mod keys;
