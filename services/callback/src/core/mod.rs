//! Which calls are let in, decided by their signatures alone; which outputs count as committed; whose attempts are whose.

mod attempts;
mod commit;
mod door;

pub use attempts::{Attempts, TaskLine};
pub use commit::{Elsewhere, MARKER, NotCommitted, check, folder};
pub use door::{Door, Names, Refused, Shown};
