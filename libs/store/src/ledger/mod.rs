//! The ledger: what may be appended, what an append answers, and what a reader gets.

mod append;
mod hash;
mod held;
mod read;
mod shared;

use servo_model::{EventType, Stream};
use uuid::Uuid;

use crate::error::StoreError;
use crate::time::Timestamp;

pub(crate) use append::append_validated;
pub use held::HeldBatch;
pub use read::{EVENTS_PER_READ_MAX, Event, LedgerReader, ReadError};
pub use shared::{Ledger, LedgerCounts};

/// Larger values belong into a blob that the event names; a RunRequested alone may be larger (`EventType::bytes_max`). The
/// same numbers stand in the table's constraint.
pub const EVENT_PAYLOAD_BYTES_MAX: usize = servo_model::limits::EVENT_BYTES_MAX;
/// The same number stands in the table's constraint.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 1_024;
/// What one caller may append at once.
pub const EVENTS_PER_BATCH_MAX: usize = servo_model::limits::EVENTS_PER_BATCH_MAX;

/// An event to append. Position and time are the database's to give, the source is the role that appends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Made once, kept over repetitions: it tells a repeated append from somebody else's.
    pub event_id: Uuid,
    pub kind: EventType,
    /// The version of the payload's shape.
    pub version: i16,
    /// Of the stream of `kind`.
    pub shard: i16,
    pub tenant: String,
    /// Empty for what belongs to the whole tenant.
    pub workspace: String,
    /// Unique per (tenant, workspace) for seven days.
    pub idempotency_key: String,
    /// The run (or backfill, schedule, …) this is part of.
    pub correlation_id: Option<Uuid>,
    /// The event that led to this one.
    pub causation_id: Option<Uuid>,
    /// `servo.v1.Event`, encoded.
    pub payload: Vec<u8>,
}

/// Why an event is refused before it reaches the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {ordinal} ({}): {field} {fault}", kind.name())]
pub struct BadEvent {
    /// Its place in the batch, from 0.
    pub ordinal: usize,
    pub kind: EventType,
    pub field: &'static str,
    pub fault: String,
}

#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    #[error(transparent)]
    BadEvent(#[from] BadEvent),
    #[error("a batch of {0} events is larger than {EVENTS_PER_BATCH_MAX}; split it")]
    TooManyEvents(usize),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ledger's answer for one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    pub outcome: Outcome,
    /// Where the event stands that the ledger keeps under this key.
    pub stream: Stream,
    pub shard: i16,
    pub position: i64,
    pub recorded_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// This event was appended, now or by an earlier try with the same event id.
    New,
    /// Another event with the same key and body stands there already.
    Duplicate { event_id: Uuid },
    /// The key belongs to an event with another body; nothing was appended for this one.
    Conflict { event_id: Uuid },
}

/// Checks what can be checked without the database, so that one bad event does not fail others that share its
/// commit.
pub(crate) fn validate(events: &[NewEvent]) -> Result<(), AppendError> {
    if events.len() > EVENTS_PER_BATCH_MAX {
        return Err(AppendError::TooManyEvents(events.len()));
    }
    for (ordinal, event) in events.iter().enumerate() {
        if let Some((field, fault)) = fault_of(event) {
            return Err(BadEvent {
                ordinal,
                kind: event.kind,
                field,
                fault,
            }
            .into());
        }
    }
    Ok(())
}

fn fault_of(event: &NewEvent) -> Option<(&'static str, String)> {
    let stream = event.kind.stream();
    if !(0..stream.shards()).contains(&event.shard) {
        let fault = format!(
            "is {}, but stream {} has {}",
            event.shard,
            stream.name(),
            stream.shards()
        );
        return Some(("shard", fault));
    }
    if event.version < 1 {
        return Some((
            "version",
            format!("is {}; versions count from 1", event.version),
        ));
    }
    if event.tenant.is_empty() {
        return Some((
            "tenant",
            "is empty; every event belongs to a tenant".to_owned(),
        ));
    }
    let texts = [
        ("tenant", &event.tenant),
        ("workspace", &event.workspace),
        ("idempotency_key", &event.idempotency_key),
    ];
    if let Some((field, _)) = texts.into_iter().find(|(_, text)| text.contains('\0')) {
        return Some((
            field,
            "contains a NUL character, which Postgres cannot store".to_owned(),
        ));
    }
    let key = event.idempotency_key.len();
    if !(1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key) {
        return Some((
            "idempotency_key",
            format!("has {key} bytes; 1 to {IDEMPOTENCY_KEY_BYTES_MAX} are allowed"),
        ));
    }
    let (payload, most) = (event.payload.len(), event.kind.bytes_max());
    if payload > most {
        return Some((
            "payload",
            format!("has {payload} bytes, above {most}; put it into a blob and name that"),
        ));
    }
    None
}
