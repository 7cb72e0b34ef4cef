//! The mesh over real sockets and real TLS.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

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
