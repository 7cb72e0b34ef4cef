//! Tests of the fold.

mod catalogue;
mod invariance;
mod retry;
mod scenarios;
mod shared;
mod world;
