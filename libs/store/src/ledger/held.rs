//! The holder's own append: events it has folded already, at the positions it folded them at.

use std::collections::BTreeMap;

use servo_model::EventType;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::{NewEvent, hash};
use crate::error::StoreError;
use crate::lease::Lease;
use crate::store::LoopStore;
use crate::time::Timestamp;

/// Shards that move together in one statement, and what is appended to them.
#[derive(Debug)]
pub struct HeldBatch<'a> {
    leases: BTreeMap<i16, Moved<'a>>,
    at: Timestamp,
    events: Vec<(i64, &'a NewEvent)>,
}

#[derive(Debug)]
struct Moved<'a> {
    lease: &'a Lease,
    from: i64,
    to: i64,
}

impl<'a> HeldBatch<'a> {
    /// `at` is the database's time as well as the caller knows it.
    pub fn new(at: Timestamp) -> HeldBatch<'a> {
        HeldBatch {
            leases: BTreeMap::new(),
            at,
            events: Vec::new(),
        }
    }

    /// Moves a shard's watermark over events that stand in the ledger.
    pub fn advance(&mut self, lease: &'a Lease, from: i64, to: i64) {
        self.leases.insert(lease.shard, Moved { lease, from, to });
    }

    /// Appends an event behind everything the shard's watermark has passed by now, which must be its head.
    pub fn append(&mut self, lease: &'a Lease, watermark: i64, event: &'a NewEvent) -> i64 {
        let moved = self.leases.entry(lease.shard).or_insert(Moved {
            lease,
            from: watermark,
            to: watermark,
        });
        moved.to += 1;
        self.events.push((moved.to, event));
        moved.to
    }

    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Binds what `ledger.fold` takes behind its stream: holder, shards, marks, time and events.
    pub fn bind<'q>(
        &'q self,
        query: Query<'q, Postgres, PgArguments>,
    ) -> Query<'q, Postgres, PgArguments> {
        let holder = self
            .leases
            .values()
            .next()
            .map_or("", |moved| &*moved.lease.holder);
        let shards =
            |field: fn(&Moved<'_>) -> i64| self.leases.values().map(field).collect::<Vec<i64>>();
        query
            .bind(holder)
            .bind(self.leases.keys().copied().collect::<Vec<i16>>())
            .bind(shards(|moved| moved.lease.epoch))
            .bind(shards(|moved| moved.from))
            .bind(shards(|moved| moved.to))
            .bind(self.at)
            .bind(self.column(|e| e.shard))
            .bind(
                self.events
                    .iter()
                    .map(|(position, _)| *position)
                    .collect::<Vec<i64>>(),
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
    /// Runs the statement that stores a batch, if no lease of it was acquired over a connection that is gone since.
    /// Answers the database's time.
    pub async fn store_held<'q>(
        &self,
        batch: &HeldBatch<'_>,
        statement: Query<'q, Postgres, PgArguments>,
    ) -> Result<Timestamp, StoreError> {
        let generation = self.pool.generations.current();
        if let Some(moved) = batch
            .leases
            .values()
            .find(|moved| moved.lease.generation != generation)
        {
            return Err(StoreError::LeaseLost(format!(
                "the lease on shard {} was acquired over a connection that is gone",
                moved.lease.shard
            )));
        }
        let rows: Vec<(Timestamp,)> = self.all(statement).await?;
        rows.first()
            .map(|(now,)| *now)
            .ok_or(StoreError::Database(sqlx::Error::RowNotFound))
    }
}
