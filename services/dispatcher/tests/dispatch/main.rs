//! The dispatcher over mutual TLS and on a real Postgres, with models of the scheduler and the
//! callback service and with workers of the public client.

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod api;
mod flow;
mod owner;
mod reports;
mod world;
