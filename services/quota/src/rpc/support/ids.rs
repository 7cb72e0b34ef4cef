//! New ids.

use servo_mesh::now;
use servo_model::EventId;

pub(crate) fn new_event_id() -> EventId {
    EventId::new(now().unix_ms(), rand::random())
}
