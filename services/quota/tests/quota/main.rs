//! The quota service over mutual TLS, on a real Postgres.

#![cfg(test)]

mod limits;
mod money;
mod pools;
mod support;
mod usage;
mod used;
mod watch;
