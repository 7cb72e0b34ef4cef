//! A run folded from its events once more, with all that they left in other tables.

use servo_mesh::{Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_proto::v1::event::Body;
use servo_store::{Event, query};

use crate::core::{Materialized, PartitionUpdate, RecordedCheck, Run};
use crate::replay::Replay;
use crate::rpc::{Scheduler, answer, story};
use crate::store::StoredRun;
use crate::wire;

pub(super) struct FoldedRun {
    pub(super) run: Run,
    pub(super) run_key: String,
    pub(super) made: Vec<Materialized>,
    pub(super) checks: Vec<RecordedCheck>,
    pub(super) partitions: Vec<PartitionUpdate>,
    /// Requests under its key that asked for something else while it went on.
    pub(super) conflicts: Vec<Event>,
}

pub(super) async fn row(scheduler: &Scheduler, number: i64) -> Result<Option<StoredRun>, Error> {
    let select = query(include_str!("../../store/run_by_number.sql")).bind(number);
    Ok(scheduler
        .store
        .loops()
        .all(select)
        .await
        .map_err(answer::store)?
        .pop())
}

/// None for a run whose events are no longer there.
pub(super) async fn read(
    scheduler: &Scheduler,
    row: &StoredRun,
    until: i64,
) -> Result<Option<FoldedRun>, Error> {
    let events = events(scheduler, row, until).await?;
    let loops = scheduler.store.loops();
    let plan_id = row
        .plan_id
        .as_deref()
        .and_then(|id| <[u8; 32]>::try_from(id).ok());
    let plan = match plan_id {
        Some(plan_id) => scheduler
            .plans
            .find(loops, &row.tenant, &row.workspace, plan_id)
            .await
            .map_err(answer::store)?,
        None => None,
    };
    fold(&events, Replay::new(row.run_number, plan))
        .map_err(|fault| Error::new(Reason::Internal, fault))
}

async fn events(scheduler: &Scheduler, row: &StoredRun, until: i64) -> Result<Vec<Event>, Error> {
    let (shard, first) = story::place(row.run_number);
    let select = query(include_str!("../../store/run_events.sql"))
        .bind(shard)
        .bind(first)
        .bind(until)
        .bind(row.run_id)
        .bind(row.created_at)
        .bind(row.ended_at);
    scheduler
        .store
        .loops()
        .all(select)
        .await
        .map_err(answer::store)
}

/// The event of the run's workspace that stands under a key, if the key is still known.
pub(super) async fn event_under(
    scheduler: &Scheduler,
    past: &FoldedRun,
    key: &IdempotencyKey,
) -> Result<Option<Event>, Error> {
    let (tenant, workspace) = (
        past.run.header.tenant.as_str(),
        past.run.header.workspace.as_str(),
    );
    scheduler
        .store
        .reader()
        .by_key(tenant, workspace, key.as_str())
        .await
        .map_err(answer::store)
}

fn fold(events: &[Event], mut replay: Replay) -> Result<Option<FoldedRun>, String> {
    let (mut made, mut checks, mut partitions) = (Vec::new(), Vec::new(), Vec::new());
    let mut conflicts = Vec::new();
    for event in events {
        if replay
            .begun
            .as_ref()
            .is_some_and(|begun| is_conflict(&begun.run, event))
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
    let past = replay.begun.map(|begun| {
        let (run, run_key) = (begun.run, begun.requested.run_key);
        FoldedRun {
            run,
            run_key,
            made,
            checks,
            partitions,
            conflicts,
        }
    });
    Ok(past)
}

fn is_conflict(run: &Run, event: &Event) -> bool {
    let Ok((Body::RunRequested(request), _)) = wire::body_of(&event.payload) else {
        return false;
    };
    wire::fingerprint(&request)
        .is_ok_and(|said| *said.digest().as_bytes() != run.header.fingerprint)
}
