//! The fold against its promises.

mod invariance;
mod retry;
mod scenarios;
mod world;
