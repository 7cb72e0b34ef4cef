//! The mesh over real sockets and real TLS.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod config;
mod deadlines;
mod drain;
mod identity;
mod limits;
mod matrix;
mod observe;
mod peers;
mod process;
mod rotation;
mod spans;
mod support;
mod tenants;
