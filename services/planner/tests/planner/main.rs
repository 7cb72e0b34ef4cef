//! The planner as a service: over mutual TLS, on a real Postgres.

mod artifacts;
mod deployments;
mod partitions;
mod plans;
mod support;
