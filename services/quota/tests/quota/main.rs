//! Tests the quota service over mutual TLS, on a real Postgres.

#![cfg(test)]

mod current_use;
mod limits;
mod money;
mod pools;
mod support;
mod usage;
mod watch;
