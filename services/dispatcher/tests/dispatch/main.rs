//! The dispatcher as it is served, over mutual TLS and on a real Postgres, between a model of the runs' owner, a
//! model of the callback service, and workers of the public client.

#![cfg(test)]

mod api;
mod flow;
mod owner;
mod reports;
mod world;
