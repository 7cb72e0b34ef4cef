//! The fold against its promises.

mod invariance;
mod scenarios;
mod world;
