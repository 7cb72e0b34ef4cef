//! New ids.

use jiff::Timestamp;
use servo_model::EventId;

pub(crate) fn new_event_id() -> EventId {
    let millis = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
    EventId::new(millis, rand::random())
}
