//! Tests the planner as a service, over mutual TLS and on a real Postgres.

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod artifacts;
mod asset_partitions;
mod deployments;
mod partitions;
mod plans;
mod support;
