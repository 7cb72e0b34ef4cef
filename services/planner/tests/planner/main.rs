//! The planner as a service: over mutual TLS, on a real Postgres.

#![cfg(test)]

mod artifacts;
mod deployments;
mod partitions;
mod plans;
mod support;
mod survey;
