//! Tests the planner as a service, over mutual TLS and on a real Postgres.

#![cfg(test)]

mod artifacts;
mod asset_partitions;
mod deployments;
mod partitions;
mod plans;
mod support;
