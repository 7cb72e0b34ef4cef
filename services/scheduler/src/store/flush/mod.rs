//! The rows of a flush and the one statement that writes them (ADR 12).
//!
//! A flush appends events, moves watermarks and writes every row that the events changed. All of it
//! is one statement, because one round trip and one commit per flush is what limits throughput, and
//! because the fence in its first part then guards every row. [`statement`] builds it: [`rows`]
//! lists the values column by column, [`parts`] puts the SQL parts together.

mod parts;
mod rows;

pub(crate) use rows::{FlushRows, statement};

use servo_model::request::RequestFingerprint;
use servo_model::states::MaterializationState;
use servo_model::{AttemptId, Position, RunId, ShardId, TenantId, Timestamp};
use uuid::Uuid;

use crate::core::{Changes, Run};

/// A run and what the flush changed in it.
pub(crate) struct ChangedRun<'a> {
    pub(crate) run: &'a Run,
    pub(crate) changes: &'a Changes,
    /// Set for a run that has no row yet.
    pub(crate) new_row: Option<&'a NewRunRow>,
    pub(crate) plan_fingerprint: Option<&'a str>,
}

/// The columns that are only written with a run's first row.
#[derive(Debug, Clone)]
pub(crate) struct NewRunRow {
    pub(crate) event_id: Uuid,
    pub(crate) run_key: String,
    pub(crate) generation: u32,
    /// RunRequested, encoded.
    pub(crate) request: Vec<u8>,
    /// The request id of the call that created the run, if it had one.
    pub(crate) request_id: Option<String>,
}

/// A request under the run key of another request.
#[derive(Debug)]
pub(crate) struct Conflict {
    pub(crate) tenant: TenantId,
    pub(crate) workspace: String,
    pub(crate) event_id: Uuid,
    /// The run that holds the key.
    pub(crate) run_id: RunId,
    pub(crate) fingerprint: RequestFingerprint,
    /// RunRequested, encoded.
    pub(crate) request: Vec<u8>,
    pub(crate) at: Timestamp,
}

/// A decision about the quarantined materializations of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolution {
    pub(crate) attempt_id: AttemptId,
    pub(crate) state: MaterializationState,
    /// The version that the materializations have afterwards, counted from 0.
    pub(crate) version: i64,
    pub(crate) at: Timestamp,
    /// `servo.v1.Actor`, encoded.
    pub(crate) resolved_by: Vec<u8>,
    pub(crate) event_id: Uuid,
    /// The code version that wrote them; an approval copies it to the partition row.
    pub(crate) code_version: String,
}

/// A message for the bus.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OutboxMessage {
    pub(crate) shard: ShardId,
    pub(crate) position: Position,
    pub(crate) run_id: Uuid,
    pub(crate) tenant: TenantId,
    pub(crate) workspace: String,
    pub(crate) payload: Vec<u8>,
}
