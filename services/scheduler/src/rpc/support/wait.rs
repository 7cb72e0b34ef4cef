//! `wait_for_event_id`: a read that waits until an event is folded.
//!
//! An accepted event is already folded, unless its shard had no holder when it was recorded. So the
//! first look nearly always succeeds.

use std::time::Duration;

use servo_mesh::{Error, Reason, time_left};
use servo_model::Timestamp;
use tokio::time::Instant;
use ulid::Ulid;
use uuid::Uuid;

use super::errors;
use crate::rpc::Scheduler;
use crate::store::events;

/// The longest wait; a caller's deadline may be shorter.
const WAIT_MAX: Duration = Duration::from_secs(10);
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// An event id contains its creation time; the event is searched around that time, with this
/// tolerance for differences between clocks.
const BEFORE: Duration = Duration::from_secs(5);
const AFTER: Duration = Duration::from_secs(60);

/// Returns at once when there is nothing to wait for.
pub(crate) async fn for_event(scheduler: &Scheduler, event_id: &str) -> Result<(), Error> {
    if event_id.is_empty() {
        return Ok(());
    }
    let id = Ulid::from_string(event_id).map_err(|error| {
        let message = format!(
            "`{event_id}` is not an event id ({error}); use accepted_event_id of a response"
        );
        Error::bad_field("wait_for_event_id", message)
    })?;
    let until = Instant::now() + WAIT_MAX.min(time_left().unwrap_or(WAIT_MAX).mul_f64(0.9));
    while !is_folded(scheduler, id).await? {
        if Instant::now() + RETRY_DELAY > until {
            let message = format!(
                "event {event_id} is not folded yet; call again, or read without waiting for it"
            );
            return Err(Error::new(Reason::WaitTimeout, message).with("event_id", event_id));
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
    Ok(())
}

async fn is_folded(scheduler: &Scheduler, id: Ulid) -> Result<bool, Error> {
    let created_at = Timestamp::UNIX_EPOCH.plus(Duration::from_millis(id.timestamp_ms()));
    let recorded = (created_at.minus(BEFORE), created_at.plus(AFTER));
    let loops = scheduler.reads.store.loops();
    events::is_folded(loops, Uuid::from_u128(id.into()), recorded)
        .await
        .map_err(errors::store)
}
