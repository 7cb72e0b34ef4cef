//! The wall clock. Cores take the time as an argument, and what must not depend on the clocks of
//! machines (leases, the order of events) uses the database's time.

use std::time::SystemTime;

use servo_model::Timestamp;

/// The current time of this machine.
#[expect(clippy::disallowed_methods, reason = "the one place that reads it")]
pub fn now() -> Timestamp {
    SystemTime::now().into()
}
