//! The real binaries as separate processes over mutual TLS on a real Postgres.

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision and read the clock"
)]

mod access;
mod actors;
mod bad_input;
mod bench;
mod callback;
mod cancels;
mod clients;
mod commands;
mod configuration;
mod data;
mod docs;
mod engine;
mod fairness;
mod gateway;
mod graphs;
mod instances;
mod kills;
mod limits;
mod metrics;
mod outage;
mod partitions;
mod projections;
mod push;
mod quota_usage;
mod reads;
mod returns;
mod runs;
mod spans;
mod states;
mod streams;
mod support;
mod workers;
