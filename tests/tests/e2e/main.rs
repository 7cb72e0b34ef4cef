//! The real binaries as separate processes over mutual TLS on a real Postgres.

#![cfg(test)]

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
mod outage;
mod partitions;
mod projections;
mod push;
mod reads;
mod returns;
mod runs;
mod spans;
mod states;
mod streams;
mod support;
mod used;
mod workers;
