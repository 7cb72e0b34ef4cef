//! Folding the events that other services appended to a held shard.

use std::panic::{AssertUnwindSafe, catch_unwind};

use servo_model::request::RequestFingerprint;
use servo_model::{EventType, RunId, ShardId, Stream, TenantId};
use servo_proto::v1::event::Body;
use servo_store::{Event, ReadError, StoreError};

use super::flush::PendingFlush;
use super::lane::Lane;
use super::new_run::{new_run_row, unplanned_run};
use super::resolutions::resolution;
use super::shard::run_number;
use crate::core::{Changes, Run, Verdict, fold};
use crate::plans::LoadedPlans;
use crate::store::flush::Conflict;
use crate::store::plans::PlanLocation;
use crate::wire;

/// How many events one pass over a shard folds.
const EVENTS_PER_PASS: i64 = 500;

impl Lane {
    /// Folds the appended events of a shard, and loads the shard again when that fails.
    pub(super) async fn catch_up_or_reload(&mut self, shard: ShardId) {
        if !self.shards.contains_key(&shard) {
            return;
        }
        if let Err(error) = self.catch_up(shard).await {
            tracing::warn!(%error, %shard, "failed to fold appended events; reloading the shard");
            self.reload_shard(shard).await;
        }
    }

    pub(super) async fn catch_up(&mut self, shard: ShardId) -> Result<(), StoreError> {
        loop {
            let after = self.shards[&shard].watermark;
            let read = self
                .reader
                .read(Stream::Execution, shard, after, EVENTS_PER_PASS)
                .await;
            let events = match read {
                Ok(events) => events,
                Err(ReadError::Store(error)) => return Err(error),
                Err(gap @ ReadError::Gap { .. }) => {
                    tracing::error!(%gap, %shard, "the ledger has a gap; the shard stops");
                    self.drop_shard(shard);
                    return Ok(());
                }
            };
            if events.is_empty() {
                return Ok(());
            }
            let readable = events.iter().take_while(|event| is_known(event)).count();
            self.fold_appended(shard, &events[..readable]).await?;
            self.evict_ended_runs(events.iter().filter_map(run_of));
            if let Some(event) = events.get(readable) {
                let (kind, version) = (event.type_code, event.version);
                tracing::error!(
                    %shard,
                    kind,
                    version,
                    "unknown event kind; releasing the shard for a newer version"
                );
                self.unreadable.add(shard);
                self.drop_shard(shard);
                return Ok(());
            }
            if (events.len() as i64) < EVENTS_PER_PASS {
                return Ok(());
            }
        }
    }

    /// Folds the events. A run is set aside when one of its events cannot be folded or its rows
    /// cannot be stored; the other runs continue.
    async fn fold_appended(&mut self, shard: ShardId, events: &[Event]) -> Result<(), StoreError> {
        let Err(failed) = self.try_fold_appended(shard, events).await else {
            return Ok(());
        };
        // The batch was not stored, so its runs are loaded again.
        self.evict_runs(events.iter().filter_map(run_of));
        match (failed, events) {
            (FoldError::Event(at, fault), _) => {
                Box::pin(self.fold_appended(shard, &events[..at])).await?;
                self.set_aside(shard, &events[at], &fault).await?;
                Box::pin(self.fold_appended(shard, &events[at + 1..])).await
            }
            (FoldError::Store(error), [only]) if error.is_about_values() => {
                self.set_aside(shard, only, &error.to_string()).await
            }
            (FoldError::Store(error), [_, _, ..]) if error.is_about_values() || is_slow(&error) => {
                let (first, second) = events.split_at(events.len() / 2);
                Box::pin(self.fold_appended(shard, first)).await?;
                Box::pin(self.fold_appended(shard, second)).await
            }
            (FoldError::Store(error), _) => Err(error),
        }
    }

    async fn try_fold_appended(
        &mut self,
        shard: ShardId,
        events: &[Event],
    ) -> Result<(), FoldError> {
        if events.is_empty() {
            return Ok(());
        }
        let runs = events
            .iter()
            .filter_map(|event| Some((run_of(event)?, event.tenant.tenant())));
        self.load_missing(runs).await?;
        let plans = self
            .plans
            .load(&self.loops, events.iter().filter_map(plan_of).collect())
            .await?;
        let at = self.time_for(std::iter::once(shard)).await?;
        let mut pending = PendingFlush::default();
        for (index, event) in events.iter().enumerate() {
            pending.watermarks.insert(shard, event.position);
            // A panic may leave a run half changed; the failed batch evicts its runs.
            let folded = catch_unwind(AssertUnwindSafe(|| {
                self.fold_appended_event(shard, event, &plans, &mut pending)
            }));
            folded
                .unwrap_or_else(|_| Err("folding the event panics".to_owned()))
                .map_err(|fault| FoldError::Event(index, fault))?;
        }
        self.store(&pending, at, None).await?;
        if let (Some(held), Some(last)) = (self.shards.get_mut(&shard), events.last()) {
            held.recorded_at = held.recorded_at.max(last.recorded_at);
        }
        self.publish(pending);
        self.run_watchers.notify(events.iter().filter_map(run_of));
        Ok(())
    }

    fn fold_appended_event(
        &mut self,
        shard: ShardId,
        event: &Event,
        plans: &LoadedPlans,
        pending: &mut PendingFlush,
    ) -> Result<(), String> {
        let run_id = run_of(event).ok_or("the event has no run")?;
        let (body, trace) = wire::body_of(&event.payload).map_err(|bad| bad.to_string())?;
        let at = event.recorded_at;
        let held = self.shards.get_mut(&shard).ok_or("the shard is not held")?;
        if held.set_aside.contains(&run_id) {
            return Ok(());
        }
        let run = held
            .runs
            .get_mut(&run_id)
            .filter(|run| event.tenant.tenant() == Some(&run.header.tenant));
        match (body, run) {
            (Body::RunRequested(requested), Some(run)) => {
                let fingerprint = wire::fingerprint(&requested).map_err(|bad| bad.to_string())?;
                if *fingerprint.digest().as_bytes() != run.header.fingerprint {
                    let tenant = run.header.tenant.clone();
                    pending
                        .conflicts
                        .push(conflict(event, tenant, run_id, fingerprint));
                }
                Ok(())
            }
            (Body::RunRequested(requested), None) => {
                let tenant = event.tenant.tenant().ok_or("the event has no tenant")?;
                let number = run_number(shard, event.position);
                let header = wire::header(
                    tenant,
                    &event.workspace,
                    number,
                    &requested,
                    trace.as_ref(),
                    at,
                );
                let run = Run::requested(header.map_err(|bad| bad.to_string())?);
                pending.new_runs.insert(
                    run_id,
                    new_run_row(event.event_id, &requested, event.payload.clone()),
                );
                pending.unplanned.extend(unplanned_run(&run, &requested));
                held.runs.insert(run_id, run);
                pending.changes.insert(
                    run_id,
                    Changes {
                        run: true,
                        ..Changes::default()
                    },
                );
                Ok(())
            }
            // Only valid decisions are appended, so the event is not checked again.
            (Body::QuarantineResolved(resolved), Some(run)) => {
                let resolution = resolution(&resolved, run, event.event_id, at);
                pending
                    .resolutions
                    .push(resolution.ok_or("the materialization id or the decision is missing")?);
                Ok(())
            }
            (body, Some(run)) => {
                let plan = plan_id(&body).and_then(|plan_id| plans.get(&plan_id));
                let happened = wire::from_body(&body, plan).map_err(|bad| bad.to_string())?;
                let verdict = fold(
                    run,
                    &happened,
                    at,
                    pending.changes.entry(run_id).or_default(),
                );
                if let (Body::PlanCreated(created), Verdict::Folded) = (body, verdict) {
                    pending
                        .plan_fingerprints
                        .insert(run_id, created.plan_fingerprint);
                }
                Ok(())
            }
            (body, None) => {
                let kind = servo_proto::kind_of(&body).name();
                tracing::error!(kind, event = %event.event_id, %shard, "skipping an event of an unknown run");
                Ok(())
            }
        }
    }
}

/// Why a batch of events was not folded.
enum FoldError {
    /// The event with this index, and what is wrong with it.
    Event(usize, String),
    Store(StoreError),
}

impl From<StoreError> for FoldError {
    fn from(error: StoreError) -> FoldError {
        FoldError::Store(error)
    }
}

/// Whether a smaller batch may succeed.
fn is_slow(error: &StoreError) -> bool {
    matches!(error, StoreError::Slow(_))
}

fn conflict(
    event: &Event,
    tenant: TenantId,
    run_id: RunId,
    fingerprint: RequestFingerprint,
) -> Conflict {
    Conflict {
        tenant,
        workspace: event.workspace.clone(),
        event_id: event.event_id,
        run_id,
        fingerprint,
        request: event.payload.clone(),
        at: event.recorded_at,
    }
}

pub(super) fn run_of(event: &Event) -> Option<RunId> {
    event
        .correlation_id
        .map(|id| RunId::from_bytes(id.into_bytes()))
}

/// The plan that a PlanCreated names.
fn plan_of(event: &Event) -> Option<PlanLocation> {
    if event.kind() != Some(EventType::PlanCreated) {
        return None;
    }
    let (body, _) = wire::body_of(&event.payload).ok()?;
    Some(PlanLocation {
        plan_id: plan_id(&body)?,
        tenant: event.tenant.tenant()?.clone(),
        workspace: event.workspace.clone(),
    })
}

fn plan_id(body: &Body) -> Option<[u8; 32]> {
    let Body::PlanCreated(created) = body else {
        return None;
    };
    created
        .plan_id
        .parse::<servo_model::Digest>()
        .ok()
        .map(|digest| *digest.as_bytes())
}

/// Whether this version can fold the event; others must wait for a newer version.
fn is_known(event: &Event) -> bool {
    event.kind().is_some() && event.version == 1
}
