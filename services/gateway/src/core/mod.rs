//! Decisions about access: no async, no clock, no SQL, no randomness.

pub mod access;
pub mod api_keys;
