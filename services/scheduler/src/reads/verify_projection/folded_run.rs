//! A run folded again from its events, with the rows that they write to other tables.

use servo_mesh::{Error, Reason};
use servo_model::Position;
use servo_model::idempotency::IdempotencyKey;
use servo_proto::v1::event::Body;
use servo_store::Event;

use crate::core::{Materialized, PartitionUpdate, RecordedCheck, Run};
use crate::reads::replay::Replay;
use crate::reads::{Reads, errors, run_history};
use crate::store::events::{self, RunEvents};
use crate::store::runs::{self, StoredRun};
use crate::wire;

pub(super) struct FoldedRun {
    pub(super) run: Run,
    pub(super) run_key: String,
    pub(super) made: Vec<Materialized>,
    pub(super) checks: Vec<RecordedCheck>,
    pub(super) partitions: Vec<PartitionUpdate>,
    /// Conflicting requests under its key while it was open.
    pub(super) conflicts: Vec<Event>,
}

pub(super) async fn find_row(reads: &Reads, number: i64) -> Result<Option<StoredRun>, Error> {
    runs::find_by_number(reads.store.loops(), number)
        .await
        .map_err(errors::store)
}

/// Returns `None` for a run whose events are no longer stored.
pub(super) async fn read(
    reads: &Reads,
    row: &StoredRun,
    until: Position,
) -> Result<Option<FoldedRun>, Error> {
    let events = read_events(reads, row, until).await?;
    let loops = reads.store.loops();
    let plan = match row.plan_id() {
        Some(plan_id) => reads
            .plans
            .find(loops, &row.tenant, &row.workspace, plan_id)
            .await
            .map_err(errors::store)?,
        None => None,
    };
    fold(&events, Replay::new(row.run_number, plan))
        .map_err(|fault| Error::new(Reason::Internal, fault))
}

async fn read_events(reads: &Reads, row: &StoredRun, until: Position) -> Result<Vec<Event>, Error> {
    let (shard, first) = run_history::first_event(row.run_number);
    let run_events = RunEvents {
        run_id: row.run_id,
        shard,
        positions: (first, until),
        created_at: row.created_at,
        ended_at: row.ended_at,
    };
    events::list_of_any_run(reads.store.loops(), run_events)
        .await
        .map_err(errors::store)
}

/// Finds an event of the run's workspace by its idempotency key, if the ledger still has the key.
pub(super) async fn find_event(
    reads: &Reads,
    folded: &FoldedRun,
    key: &IdempotencyKey,
) -> Result<Option<Event>, Error> {
    let header = &folded.run.header;
    reads
        .store
        .reader()
        .by_key(
            &header.tenant.clone().into(),
            header.workspace.as_str(),
            key.as_str(),
        )
        .await
        .map_err(errors::store)
}

fn fold(events: &[Event], mut replay: Replay) -> Result<Option<FoldedRun>, String> {
    let (mut made, mut checks, mut partitions) = (Vec::new(), Vec::new(), Vec::new());
    let mut conflicts = Vec::new();
    for event in events {
        if replay
            .replayed
            .as_ref()
            .is_some_and(|replayed| is_conflict(&replayed.run, event))
        {
            conflicts.push(event.clone());
        }
        let Some(step) = replay.fold(event)? else {
            continue;
        };
        made.extend(step.changes.materialized);
        checks.extend(step.changes.checks);
        partitions.extend(step.changes.partitions);
    }
    let folded = replay.replayed.map(|replayed| {
        let (run, run_key) = (replayed.run, replayed.requested.run_key);
        FoldedRun {
            run,
            run_key,
            made,
            checks,
            partitions,
            conflicts,
        }
    });
    Ok(folded)
}

fn is_conflict(run: &Run, event: &Event) -> bool {
    let Ok((Body::RunRequested(request), _)) = wire::body_of(&event.payload) else {
        return false;
    };
    wire::fingerprint(&request)
        .is_ok_and(|fingerprint| *fingerprint.digest().as_bytes() != run.header.fingerprint)
}
