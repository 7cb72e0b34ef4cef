//! The wall clock of the user's machine. The client does not depend on the mesh and its clock.

use std::time::SystemTime;

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the client reads it"
)]
pub(super) fn now() -> SystemTime {
    SystemTime::now()
}
