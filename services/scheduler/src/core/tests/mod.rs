//! The fold against its promises.

mod catalogue;
mod invariance;
mod retry;
mod scenarios;
mod shared;
mod world;
