//! Tests the quota service over mutual TLS, on a real Postgres.

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod current_use;
mod limits;
mod money;
mod pools;
mod support;
mod usage;
mod watch;
