//! Which calls are let in, decided by their signatures alone.

mod door;

pub use door::{Door, Names, Refused};
