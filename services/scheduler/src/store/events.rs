//! Events of the ledger.

use servo_mesh::filter::TimeRange;
use servo_model::{EventType, Position, ShardId, Stream, Timestamp};
use servo_store::{Event, LoopStore, StoreError, TenantTx, query};
use uuid::Uuid;

use super::Statement;

/// Which events a list contains; `None` matches any.
#[derive(Debug)]
pub(crate) struct EventFilter {
    pub stream: Stream,
    pub kind: Option<EventType>,
    pub correlation: Option<Uuid>,
    pub source: Option<String>,
    pub recorded: TimeRange,
}

/// The position of the last event of a shard.
pub(crate) async fn head(
    tx: &mut TenantTx,
    stream: Stream,
    shard: ShardId,
) -> Result<Position, StoreError> {
    let select = query(include_str!("shard_head.sql"))
        .bind(stream.code())
        .bind(shard);
    let head: Option<(Position,)> = tx.optional(select).await?;
    Ok(head.map_or(Position::START, |(head,)| head))
}

/// Lists a workspace's events of a shard after one position and up to another.
pub(crate) async fn list(
    tx: &mut TenantTx,
    workspace: &str,
    filter: &EventFilter,
    shard: ShardId,
    (after, until): (Position, Position),
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let select = query(include_str!("list_events.sql"))
        .bind(filter.stream.code())
        .bind(shard)
        .bind(after)
        .bind(until)
        .bind(workspace)
        .bind(filter.kind.map(EventType::code))
        .bind(filter.correlation)
        .bind(filter.source.as_deref())
        .bind(filter.recorded.from)
        .bind(filter.recorded.until)
        .bind(limit as i64);
    tx.all(select).await
}

/// Where the events of a run are in the ledger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunEvents {
    pub run_id: Uuid,
    pub shard: ShardId,
    /// First and last position, both included.
    pub positions: (Position, Position),
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

impl RunEvents {
    fn select(&self) -> Statement<'static> {
        query(include_str!("run_events.sql"))
            .bind(self.shard)
            .bind(self.positions.0)
            .bind(self.positions.1)
            .bind(self.run_id)
            .bind(self.created_at)
            .bind(self.ended_at)
    }
}

/// Lists the events of a run for a caller.
pub(crate) async fn list_of_run(
    tx: &mut TenantTx,
    events: RunEvents,
) -> Result<Vec<Event>, StoreError> {
    tx.all(events.select()).await
}

/// Lists the events of a run of any tenant.
pub(crate) async fn list_of_any_run(
    loops: &LoopStore,
    events: RunEvents,
) -> Result<Vec<Event>, StoreError> {
    loops.all(events.select()).await
}

/// Whether the event's shard is folded beyond it. The event was recorded between the two times.
pub(crate) async fn is_folded(
    loops: &LoopStore,
    event_id: Uuid,
    (from, until): (Timestamp, Timestamp),
) -> Result<bool, StoreError> {
    let select = query(include_str!("is_folded.sql"))
        .bind(event_id)
        .bind(from)
        .bind(until);
    let found: Vec<(bool,)> = loops.all(select).await?;
    Ok(found.first().is_some_and(|(folded,)| *folded))
}
