//! Rules of the repository that a review would otherwise have to repeat.
//!
//! Rust is parsed, not searched. Every rule is a function from files to findings and has two tests:
//! the repository has no finding, and a planted violation has one.

#![cfg(test)]

mod actors;
mod floor_plan;
mod layout;
mod modules;
mod prose;
mod purity;
mod source;
mod sql;
