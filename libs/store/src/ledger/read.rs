//! Reads a shard in order, without gaps.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::{EventType, Position, ShardId, Stream, TenantScope, Timestamp};
use uuid::Uuid;

use super::hash;
use crate::error::StoreError;
use crate::generation::Generation;
use crate::pool::LoopStore;

/// The maximum number of events of one read.
pub const EVENTS_PER_READ_MAX: i64 = 1_000;

/// An event as stored in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Event {
    pub position: Position,
    pub event_id: Uuid,
    /// A number, because a newer version may have appended a type that this one does not know.
    #[sqlx(rename = "type")]
    pub type_code: i16,
    pub version: i16,
    pub tenant: TenantScope,
    pub workspace: String,
    pub recorded_at: Timestamp,
    /// The service that appended it, as determined by the database.
    pub source: String,
    pub idempotency_key: String,
    pub correlation_id: Option<Uuid>,
    pub causation_id: Option<Uuid>,
    pub payload: Vec<u8>,
}

impl Event {
    /// The event type, if this version knows it.
    pub fn kind(&self) -> Option<EventType> {
        EventType::from_code(self.type_code)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Must never happen. The reader stops the shard and raises an alarm.
    #[error(
        "{} shard {shard} has a gap: position {found} follows {after}; stop folding it and look for lost partitions",
        stream.name()
    )]
    Gap {
        stream: Stream,
        shard: ShardId,
        after: Position,
        found: Position,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads shards for folds, rebuilds and streams. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LedgerReader {
    loops: LoopStore,
    positions: Arc<Mutex<ReadPositions>>,
}

/// The last position read from each shard and its time. Only a hint for the query, and invalid once
/// Postgres may have lost that event.
type ReadPositions = HashMap<(Stream, ShardId), (Generation, Position, Timestamp)>;

impl LedgerReader {
    pub(crate) fn new(loops: LoopStore) -> Self {
        LedgerReader {
            loops,
            positions: Arc::default(),
        }
    }

    /// Returns the events after position `after`, in order and without gaps; fewer than `limit`
    /// only if there are no more.
    pub async fn read(
        &self,
        stream: Stream,
        shard: ShardId,
        after: Position,
        limit: i64,
    ) -> Result<Vec<Event>, ReadError> {
        let generation = self.loops.pool.generations.current();
        let query = sqlx::query(include_str!("../sql/read.sql"))
            .bind(stream.code())
            .bind(shard)
            .bind(after)
            .bind(self.recorded_from(stream, shard, after))
            .bind(limit.clamp(0, EVENTS_PER_READ_MAX));
        let events: Vec<Event> = self.loops.all(query).await?;
        check_dense(stream, shard, after, &events)?;
        if let Some(last) = events.last() {
            self.lock().insert(
                (stream, shard),
                (generation, last.position, last.recorded_at),
            );
        }
        Ok(events)
    }

    /// Returns the event with an idempotency key, if the key has not expired.
    pub async fn by_key(
        &self,
        tenant: &TenantScope,
        workspace: &str,
        key: &str,
    ) -> Result<Option<Event>, StoreError> {
        let select = sqlx::query(include_str!("../sql/by_key.sql"))
            .bind(hash::key_of(tenant, workspace, key));
        Ok(self.loops.all(select).await?.into_iter().next())
    }

    /// A time that is not later than that of any event after `after`.
    fn recorded_from(&self, stream: Stream, shard: ShardId, after: Position) -> Timestamp {
        let current = self.loops.pool.generations.current();
        match self.lock().get(&(stream, shard)) {
            Some((generation, position, at)) if *generation == current && *position <= after => *at,
            _ => Timestamp::UNIX_EPOCH,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReadPositions> {
        self.positions
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn check_dense(
    stream: Stream,
    shard: ShardId,
    after: Position,
    events: &[Event],
) -> Result<(), ReadError> {
    let mut last = after;
    for event in events {
        if event.position != last.next() {
            return Err(ReadError::Gap {
                stream,
                shard,
                after: last,
                found: event.position,
            });
        }
        last = event.position;
    }
    Ok(())
}
