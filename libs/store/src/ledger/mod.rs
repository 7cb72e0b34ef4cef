//! The ledger: events to append, the results of an append, and reading.

mod append;
mod hash;
mod held;
mod read;
mod shared;

use servo_model::{EventType, Position, ShardId, Stream, TenantScope, Timestamp};
use uuid::Uuid;

use crate::error::StoreError;

pub use held::HeldBatch;
pub use read::{EVENTS_PER_READ_MAX, Event, LedgerReader, ReadError};
pub use shared::{Ledger, LedgerCounts};

/// Larger values belong in a blob that the event references; only a RunRequested may be larger
/// (`EventType::bytes_max`). The table's constraint has the same numbers.
pub const EVENT_PAYLOAD_BYTES_MAX: usize = servo_model::limits::EVENT_BYTES_MAX;
/// The table's constraint has the same number.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 1_024;
/// The maximum number of events of one append.
pub const EVENTS_PER_BATCH_MAX: usize = servo_model::limits::EVENTS_PER_BATCH_MAX;

/// An event to append. The database assigns position and time; the source is the appending role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Created once and reused in retries: it distinguishes a repeated append from another
    /// caller's.
    pub event_id: Uuid,
    pub kind: EventType,
    /// The version of the payload's schema.
    pub version: i16,
    /// A shard of the stream of `kind`.
    pub shard: ShardId,
    /// Only events of the streams dispatch and quota may be for all tenants.
    pub tenant: TenantScope,
    /// Empty for events of the whole tenant.
    pub workspace: String,
    /// Unique per (tenant, workspace) for seven days.
    pub idempotency_key: String,
    /// The run (or backfill, schedule, …) that the event belongs to.
    pub correlation_id: Option<Uuid>,
    /// The event that caused this one.
    pub causation_id: Option<Uuid>,
    /// `servo.v1.Event`, encoded.
    pub payload: Vec<u8>,
}

/// The reason why an event is refused before it reaches the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {ordinal} ({}): {field} {fault}", kind.name())]
pub struct BadEvent {
    /// The index in the batch, from 0.
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
    pub result: AppendResult,
    /// The address of the event that the ledger stores under this key.
    pub stream: Stream,
    pub shard: ShardId,
    pub position: Position,
    pub recorded_at: Timestamp,
}

/// Whether an event was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendResult {
    /// This event was appended, now or by an earlier try with the same event id.
    New,
    /// Another event with the same key and body is already stored.
    Duplicate { event_id: Uuid },
    /// The key belongs to an event with another body; nothing was appended for this one.
    Conflict { event_id: Uuid },
}

/// Checks everything that does not need the database, so that one bad event does not fail others
/// that share its commit.
fn validate(events: &[NewEvent]) -> Result<(), AppendError> {
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
    if !stream.has_shard(event.shard) {
        let fault = format!(
            "is {}, but stream {} has {}",
            event.shard,
            stream.name(),
            stream.shard_count()
        );
        return Some(("shard", fault));
    }
    if event.version < 1 {
        return Some((
            "version",
            format!("is {}; versions count from 1", event.version),
        ));
    }
    let may_be_for_all = matches!(stream, Stream::Dispatch | Stream::Quota);
    if event.tenant == TenantScope::All && !may_be_for_all {
        let fault = "is `-`; only events of dispatch and quota may be for all tenants";
        return Some(("tenant", fault.to_owned()));
    }
    let texts = [
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
            format!("has {payload} bytes, above {most}; store it as a blob and reference that"),
        ));
    }
    None
}
