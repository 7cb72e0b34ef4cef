//! The real binaries as separate processes over mutual TLS on a real Postgres.

#![cfg(test)]

mod commands;
mod configuration;
mod docs;
mod engine;
mod gateway;
mod outage;
mod push;
mod streams;
mod support;
