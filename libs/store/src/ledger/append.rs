//! The statement that appends.

use servo_model::{Position, ShardId, Stream, Timestamp};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres};
use uuid::Uuid;

use super::{AppendError, AppendResult, Appended, NewEvent, validate};
use crate::tx::Tx;

const NEW: i16 = 1;
const DUPLICATE: i16 = 2;
const CONFLICT: i16 = 3;

impl Tx {
    /// Appends events in this transaction. Call it once per transaction, otherwise two transactions
    /// may deadlock; and call it last, because the shards stay locked until the transaction ends.
    pub async fn append(&mut self, events: &[NewEvent]) -> Result<Vec<Appended>, AppendError> {
        validate(events)?;
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let batch: Vec<&NewEvent> = events.iter().collect();
        let answers = append_validated(self.connection(), &batch).await;
        Ok(self.observed(answers)?)
    }
}

/// Appends valid events, at least one, and returns one result per event, in order. Runs in the
/// connection's transaction, or as its own.
pub(crate) async fn append_validated(
    connection: &mut PgConnection,
    events: &[&NewEvent],
) -> Result<Vec<Appended>, sqlx::Error> {
    let rows = statement(events).fetch_all(connection).await?;
    rows.iter()
        .zip(events)
        .map(|(row, event)| to_appended(Row::from_row(row)?, event))
        .collect()
}

/// outcome, stream, shard, position, event id and time of the event that the ledger stores.
type Row = (i16, i16, ShardId, Position, Uuid, Timestamp);

fn statement(events: &[&NewEvent]) -> Query<'static, Postgres, PgArguments> {
    sqlx::query(include_str!("../sql/append.sql"))
        .bind(column(events, |e| e.kind.stream().code()))
        .bind(column(events, |e| e.shard))
        .bind(column(events, |e| e.event_id))
        .bind(column(events, |e| e.kind.code()))
        .bind(column(events, |e| e.version))
        .bind(column(events, |e| e.tenant.as_str()))
        .bind(column(events, |e| e.workspace.as_str()))
        .bind(column(events, |e| e.idempotency_key.as_str()))
        .bind(column(events, |e| e.correlation_id))
        .bind(column(events, |e| e.causation_id))
        .bind(column(events, |e| e.payload.as_slice()))
}

fn column<'e, T>(events: &[&'e NewEvent], field: impl Fn(&'e NewEvent) -> T) -> Vec<T> {
    events.iter().map(|event| field(event)).collect()
}

fn to_appended(
    (code, stream, shard, position, event_id, recorded_at): Row,
    event: &NewEvent,
) -> Result<Appended, sqlx::Error> {
    let unknown = |what: &str, code: i16| {
        sqlx::Error::Decode(format!("ledger.append returned an unknown {what}: {code}").into())
    };
    let result = match code {
        NEW => AppendResult::New,
        // Our own earlier append, whose outcome was unknown.
        DUPLICATE if event_id == event.event_id => AppendResult::New,
        DUPLICATE => AppendResult::Duplicate { event_id },
        CONFLICT => AppendResult::Conflict { event_id },
        other => return Err(unknown("outcome", other)),
    };
    let stream = Stream::from_code(stream).ok_or_else(|| unknown("stream", stream))?;
    Ok(Appended {
        result,
        stream,
        shard,
        position,
        recorded_at,
    })
}
