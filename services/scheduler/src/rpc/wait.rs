//! `wait_for_event_id`: a read that answers once an event is folded.
//!
//! What a caller was told was accepted is folded already, unless nobody held its shard just then; so the first look
//! nearly always finds it.

use std::time::Duration;

use servo_mesh::{Error, Reason, time_left};
use servo_store::{Timestamp, query};
use tokio::time::Instant;
use ulid::Ulid;
use uuid::Uuid;

use super::{Scheduler, answer};

/// The longest wait; a caller's deadline may be shorter.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// An event's id says when it was made; it is looked for around that time only. Clocks may differ by so much.
const BEFORE_US: i64 = 5_000_000;
const AFTER_US: i64 = 60_000_000;

/// Returns at once when there is nothing to wait for.
pub(super) async fn for_event(scheduler: &Scheduler, event_id: &str) -> Result<(), Error> {
    if event_id.is_empty() {
        return Ok(());
    }
    let id = Ulid::from_string(event_id).map_err(|error| {
        let message =
            format!("`{event_id}` is no event id ({error}); take accepted_event_id of an answer");
        Error::bad_field("wait_for_event_id", message)
    })?;
    let until = Instant::now() + PATIENCE.min(time_left().unwrap_or(PATIENCE).mul_f64(0.9));
    while !is_folded(scheduler, id).await? {
        if Instant::now() + LOOK_AGAIN > until {
            let message = format!(
                "event {event_id} is not folded yet; ask again, or read without waiting for it"
            );
            return Err(Error::new(Reason::WaitTimeout, message).with("event_id", event_id));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

async fn is_folded(scheduler: &Scheduler, id: Ulid) -> Result<bool, Error> {
    let made_at = i64::try_from(id.timestamp_ms())
        .unwrap_or(i64::MAX / 2_000)
        .saturating_mul(1_000);
    let select = query(include_str!("../store/is_folded.sql"))
        .bind(Uuid::from_u128(id.into()))
        .bind(Timestamp::from_unix_us(made_at.saturating_sub(BEFORE_US)))
        .bind(Timestamp::from_unix_us(made_at.saturating_add(AFTER_US)));
    let found: Vec<(bool,)> = scheduler
        .store
        .loops()
        .all(select)
        .await
        .map_err(answer::store)?;
    Ok(found.first().is_some_and(|(folded,)| *folded))
}
