//! The holder's append: events that it has already folded, at the positions of that fold.

use std::collections::BTreeMap;

use servo_model::{Epoch, EventType, Position, ShardId, Timestamp};
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::{NewEvent, hash};
use crate::error::StoreError;
use crate::lease::Lease;
use crate::pool::LoopStore;

/// The shards whose watermarks one statement moves, and the events it appends to them.
#[derive(Debug)]
pub struct HeldBatch<'a> {
    leases: BTreeMap<ShardId, ShardMove<'a>>,
    at: Timestamp,
    events: Vec<(Position, &'a NewEvent)>,
}

#[derive(Debug)]
struct ShardMove<'a> {
    lease: &'a Lease,
    from: Position,
    to: Position,
}

impl<'a> HeldBatch<'a> {
    /// `at` is the caller's estimate of the database's time.
    pub fn new(at: Timestamp) -> HeldBatch<'a> {
        HeldBatch {
            leases: BTreeMap::new(),
            at,
            events: Vec::new(),
        }
    }

    /// Moves a shard's watermark over events that are already in the ledger.
    pub fn advance(&mut self, lease: &'a Lease, from: Position, to: Position) {
        self.leases
            .insert(lease.shard, ShardMove { lease, from, to });
    }

    /// Appends an event after the shard's current watermark in this batch, which must be its head.
    /// Returns its position.
    pub fn append(
        &mut self,
        lease: &'a Lease,
        watermark: Position,
        event: &'a NewEvent,
    ) -> Position {
        let shard_move = self.leases.entry(lease.shard).or_insert(ShardMove {
            lease,
            from: watermark,
            to: watermark,
        });
        shard_move.to = shard_move.to.next();
        self.events.push((shard_move.to, event));
        shard_move.to
    }

    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Binds the arguments of `ledger.append_held` after its stream: holder, shards, marks, time
    /// and events.
    pub fn bind<'q>(
        &'q self,
        query: Query<'q, Postgres, PgArguments>,
    ) -> Query<'q, Postgres, PgArguments> {
        let holder = self
            .leases
            .values()
            .next()
            .map_or("", |shard_move| &*shard_move.lease.holder);
        let marks = |field: fn(&ShardMove<'_>) -> Position| {
            self.leases.values().map(field).collect::<Vec<Position>>()
        };
        let epochs: Vec<Epoch> = (self.leases.values())
            .map(|shard_move| shard_move.lease.epoch)
            .collect();
        query
            .bind(holder)
            .bind(self.leases.keys().copied().collect::<Vec<ShardId>>())
            .bind(epochs)
            .bind(marks(|shard_move| shard_move.from))
            .bind(marks(|shard_move| shard_move.to))
            .bind(self.at)
            .bind(self.column(|e| e.shard))
            .bind(
                self.events
                    .iter()
                    .map(|(position, _)| *position)
                    .collect::<Vec<Position>>(),
            )
            .bind(self.column(|e| e.event_id))
            .bind(self.column(|e| EventType::code(e.kind)))
            .bind(self.column(|e| e.version))
            .bind(self.column(|e| e.tenant.as_str()))
            .bind(self.column(|e| e.workspace.as_str()))
            .bind(self.column(|e| e.idempotency_key.as_str()))
            .bind(self.column(|e| e.correlation_id))
            .bind(self.column(|e| e.causation_id))
            .bind(self.column(|e| e.payload.as_slice()))
            .bind(self.column(hash::key))
            .bind(self.column(hash::body))
    }

    fn column<T>(&self, field: impl Fn(&'a NewEvent) -> T) -> Vec<T> {
        self.events.iter().map(|(_, event)| field(event)).collect()
    }
}

impl LoopStore {
    /// Runs the statement that stores a batch, and returns the database's time. Fails if a lease of
    /// the batch was acquired before a connection was lost.
    pub async fn store_held<'q>(
        &self,
        batch: &HeldBatch<'_>,
        statement: Query<'q, Postgres, PgArguments>,
    ) -> Result<Timestamp, StoreError> {
        let generation = self.pool.generations.current();
        if let Some(shard_move) = batch
            .leases
            .values()
            .find(|shard_move| shard_move.lease.generation != generation)
        {
            return Err(StoreError::LeaseLost(format!(
                "the lease on shard {} was acquired over a connection that was lost",
                shard_move.lease.shard
            )));
        }
        let rows: Vec<(Timestamp,)> = self.all(statement).await?;
        rows.first()
            .map(|(now,)| *now)
            .ok_or(StoreError::Database(sqlx::Error::RowNotFound))
    }
}
