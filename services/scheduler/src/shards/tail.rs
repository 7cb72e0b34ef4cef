//! What others appended, and what to do when a flush did not get through.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use servo_model::request::RequestFingerprint;
use servo_model::{EventType, RunId, Stream};
use servo_proto::v1::event::Body;
use servo_store::{Event, Lease, ReadError, StoreError, Timestamp, query};

use super::clock::DatabaseClock;
use super::command::{Command, Submission};
use super::flush::PendingFlush;
use super::lane::Lane;
use super::load;
use super::new_run::unplanned;
use super::resolutions::Resolution;
use super::rows::{Conflict, NewRunRow};
use super::shard::{Shard, run_number};
use crate::core::{Changes, Run, Verdict, fold};
use crate::plans::PlanLocation;
use crate::store::{StoredRun, open_runs};
use crate::wire;

/// What one pass over a shard folds at most.
const EVENTS_PER_PASS: i64 = 500;

/// shard, head, watermark, epoch, when its last event was recorded, and the time.
type Mark = (i16, i64, i64, i64, Timestamp, Timestamp);

impl Lane {
    /// Begins with a shard: its runs under way, then what was appended while nobody held it.
    pub(super) async fn take(&mut self, lease: Lease) {
        let number = lease.shard();
        if let Err(error) = self.try_load_shard(lease).await {
            tracing::warn!(%error, shard = number, "a shard could not be loaded; it is tried again with its next lease");
            self.drop_shard(number);
        }
    }

    pub(super) async fn try_load_shard(&mut self, lease: Lease) -> Result<(), StoreError> {
        let number = lease.shard();
        let lost =
            || StoreError::LeaseLost(format!("the lease on shard {number} is no longer held"));
        let marks = self.marks(&[number], &lease).await?;
        let (_, _, watermark, _, recorded_at, _) = *marks
            .iter()
            .find(|(_, _, _, epoch, ..)| *epoch == lease.epoch())
            .ok_or_else(lost)?;
        self.load_admission_epochs().await?;
        self.load_postgres_starts().await?;
        let (set_aside, rows): (Vec<_>, Vec<_>) = open_runs(&self.loops, number)
            .await?
            .into_iter()
            .partition(|row| row.set_aside.is_some());
        let requests: HashMap<RunId, Vec<u8>> = rows
            .iter()
            .filter(|row| row.plan_id.is_none())
            .map(|row| (row.id(), row.request.clone()))
            .collect();
        let runs = load::restore(&self.loops, &self.plans, rows).await?;
        for (run, request) in runs
            .iter()
            .filter_map(|run| Some((run, requests.get(&run.header.run_id)?)))
        {
            self.request_plan_again(run, request);
        }
        let shard = Shard {
            lease,
            watermark,
            recorded_at: recorded_at.unix_us(),
            runs: Default::default(),
            set_aside: set_aside.iter().map(StoredRun::id).collect(),
        };
        self.shards.insert(number, shard);
        self.insert_runs(runs);
        self.catch_up(number).await?;
        self.send_snapshots(number);
        Ok(())
    }

    /// Whoever held the shard before may have gone before the plan came.
    fn request_plan_again(&mut self, run: &Run, request: &[u8]) {
        if let Ok((Body::RunRequested(requested), _)) = wire::body_of(request) {
            let (tenant, created_at) = (run.header.tenant.clone(), run.header.created_at);
            unplanned(run, &requested)
                .into_iter()
                .for_each(|waiting| self.plan_or_wait(tenant.clone(), created_at, waiting));
        }
    }

    /// Which dispatchers were replaced, also while others held this shard: their claims no longer count.
    async fn load_admission_epochs(&mut self) -> Result<(), StoreError> {
        let select =
            query(include_str!("../store/admission_epochs.sql")).bind(Stream::Dispatch.code());
        let epochs: Vec<(i16, i64)> = self.loops.all(select).await?;
        for (admission_shard, epoch) in epochs {
            self.streams
                .learn(admission_shard, u64::try_from(epoch).unwrap_or(0));
        }
        Ok(())
    }

    /// Which attempts may have been erased together with their claims.
    async fn load_postgres_starts(&mut self) -> Result<(), StoreError> {
        let starts: Vec<(Timestamp,)> = self.loops.all(query("SELECT ledger.note_start()")).await?;
        self.streams
            .load_postgres_starts(starts.into_iter().map(|(start,)| start.unix_us()).collect());
        Ok(())
    }

    /// Folds what others appended to the shard.
    pub(super) async fn look(&mut self, shard: i16) {
        if !self.shards.contains_key(&shard) {
            return;
        }
        if let Err(error) = self.catch_up(shard).await {
            tracing::warn!(%error, shard, "what others appended could not be folded; the shard is loaded again");
            self.reload_shard(shard).await;
        }
    }

    /// Makes memory agree with the rows again after a flush that did not get through.
    pub(super) async fn recover(&mut self, submissions: &[Submission], error: &StoreError) {
        let shards: HashSet<i16> = submissions
            .iter()
            .map(|submission| submission.shard)
            .collect();
        match error {
            // Nothing was written and the leases stand: only what was folded in vain is wrong.
            StoreError::Behind(_)
            | StoreError::ClockOff(_)
            | StoreError::Raced(_)
            | StoreError::Slow(_)
            | StoreError::KeyTaken(_) => {
                self.evict_runs(
                    submissions
                        .iter()
                        .flat_map(|submission| submission.commands.iter().map(Command::run_id)),
                );
                self.clock = None;
                for shard in shards {
                    self.look(shard).await;
                }
                // Read again at once, or their timers would fall on nothing.
                let commands = submissions
                    .iter()
                    .flat_map(|submission| &submission.commands);
                if let Err(error) = self
                    .load_missing(commands.map(|command| (command.run_id(), command.tenant())))
                    .await
                {
                    tracing::warn!(%error, "runs could not be read again; their shards are loaded anew");
                    for submission in submissions {
                        self.reload_shard(submission.shard).await;
                    }
                }
            }
            // The keeper finds out what is still ours, and gives it to us anew.
            StoreError::LeaseLost(_) => shards.into_iter().for_each(|shard| self.drop_shard(shard)),
            _ => {
                for shard in shards {
                    self.reload_shard(shard).await;
                }
            }
        }
    }

    async fn reload_shard(&mut self, shard: i16) {
        if let Some(Shard { lease, .. }) = self.shards.remove(&shard) {
            // Whoever waits is found again with the shard, and a plan that was on its way may never come.
            self.waiting.drop_shard(shard);
            self.streams.gone(shard);
            self.take(lease).await;
        }
    }

    pub(super) async fn set_clock(&mut self) -> Result<DatabaseClock, StoreError> {
        let rows: Vec<(Timestamp,)> = self.loops.all(query("SELECT clock_timestamp()")).await?;
        let now = rows
            .first()
            .map_or(Timestamp::from_unix_us(0), |(now,)| *now);
        Ok(*self.clock.insert(DatabaseClock::at(now)))
    }

    async fn marks(&mut self, shards: &[i16], lease: &Lease) -> Result<Vec<Mark>, StoreError> {
        let select = query(include_str!("../store/marks.sql"))
            .bind(shards)
            .bind(lease.holder());
        let marks: Vec<Mark> = self.loops.all(select).await?;
        if let Some((.., now)) = marks.first() {
            self.clock = Some(DatabaseClock::at(*now));
        }
        Ok(marks)
    }

    async fn catch_up(&mut self, shard: i16) -> Result<(), StoreError> {
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
                    tracing::error!(%gap, shard, "the ledger has a hole; the shard stops");
                    self.drop_shard(shard);
                    return Ok(());
                }
            };
            if events.is_empty() {
                return Ok(());
            }
            let readable = events.iter().take_while(|event| is_known(event)).count();
            self.fold_appended(shard, &events[..readable]).await?;
            if let Some(event) = events.get(readable) {
                let (kind, version) = (event.type_code, event.version);
                tracing::error!(
                    shard,
                    kind,
                    version,
                    "an event is of a kind that this version does not know; the shard is given back"
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

    /// Folds these. A run of which one cannot be folded, or stored, is set aside, and the others go on.
    async fn fold_appended(&mut self, shard: i16, events: &[Event]) -> Result<(), StoreError> {
        let Err(stuck) = self.try_fold_appended(shard, events).await else {
            return Ok(());
        };
        // What was folded in vain is read again.
        self.evict_runs(events.iter().filter_map(run_of));
        match (stuck, events) {
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

    async fn try_fold_appended(&mut self, shard: i16, events: &[Event]) -> Result<(), FoldError> {
        if events.is_empty() {
            return Ok(());
        }
        let runs = events
            .iter()
            .filter_map(|event| Some((run_of(event)?, event.tenant.as_str())));
        self.load_missing(runs).await?;
        self.plans
            .load(&self.loops, events.iter().filter_map(plan_of).collect())
            .await?;
        let at = self.time_for(std::iter::once(shard)).await?;
        let mut pending = PendingFlush::default();
        for (index, event) in events.iter().enumerate() {
            pending.marks.insert(shard, event.position);
            // Memory that a panic left half changed is forgotten with the rest of this batch.
            let folded = catch_unwind(AssertUnwindSafe(|| {
                self.fold_appended_event(shard, event, &mut pending)
            }));
            folded
                .unwrap_or_else(|_| Err("folding it panics".to_owned()))
                .map_err(|fault| FoldError::Event(index, fault))?;
        }
        self.store(&pending, at, None).await?;
        if let (Some(held), Some(last)) = (self.shards.get_mut(&shard), events.last()) {
            held.recorded_at = held.recorded_at.max(last.recorded_at.unix_us());
        }
        self.publish(pending);
        Ok(())
    }

    fn fold_appended_event(
        &mut self,
        shard: i16,
        event: &Event,
        pending: &mut PendingFlush,
    ) -> Result<(), String> {
        let run_id = run_of(event).ok_or("it names no run")?;
        let (body, trace) = wire::body_of(&event.payload).map_err(|bad| bad.to_string())?;
        let at = event.recorded_at.unix_us();
        let held = self.shards.get_mut(&shard).ok_or("its shard is not held")?;
        if held.set_aside.contains(&run_id) {
            return Ok(());
        }
        let known = held
            .runs
            .get_mut(&run_id)
            .filter(|run| run.header.tenant.as_str() == event.tenant);
        match (body, known) {
            (Body::RunRequested(requested), Some(run)) => {
                let fingerprint = wire::fingerprint(&requested).map_err(|bad| bad.to_string())?;
                // Nothing of it changes, but one that has ended is forgotten again.
                pending.changes.entry(run_id).or_default();
                if *fingerprint.digest().as_bytes() != run.header.fingerprint {
                    pending.conflicts.push(conflict(event, run_id, fingerprint));
                }
                Ok(())
            }
            (Body::RunRequested(requested), None) => {
                let number = run_number(shard, event.position);
                let header = wire::header(
                    &event.tenant,
                    &event.workspace,
                    number,
                    &requested,
                    trace.as_ref(),
                    at,
                );
                let run = Run::requested(header.map_err(|bad| bad.to_string())?);
                pending.born.insert(
                    run_id,
                    NewRunRow::new(event.event_id, &requested, event.payload.clone()),
                );
                pending.unplanned.extend(unplanned(&run, &requested));
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
            // Only what could be decided was ever recorded.
            (Body::QuarantineResolved(resolved), Some(run)) => {
                pending.changes.entry(run_id).or_default();
                let resolution = Resolution::of(&resolved, run, event.event_id, at);
                pending
                    .resolutions
                    .push(resolution.ok_or("it names no version or no decision")?);
                Ok(())
            }
            (body, Some(run)) => {
                let plan = plan_id(&body).and_then(|plan_id| self.plans.get(&plan_id));
                let happened =
                    wire::from_body(&body, plan.as_ref()).map_err(|bad| bad.to_string())?;
                let verdict = fold(
                    run,
                    &happened,
                    at,
                    pending.changes.entry(run_id).or_default(),
                );
                if let (Body::PlanCreated(created), Verdict::Folded) = (body, verdict) {
                    pending.planned.insert(run_id, created.plan_fingerprint);
                }
                Ok(())
            }
            (body, None) => {
                let kind = servo_proto::kind_of(&body).name();
                tracing::error!(kind, event = %event.event_id, shard, "the run of an event is not known; it is passed over");
                Ok(())
            }
        }
    }
}

/// Why events could not be folded.
enum FoldError {
    /// The one at this place, for what it says.
    Event(usize, String),
    Store(StoreError),
}

impl From<StoreError> for FoldError {
    fn from(error: StoreError) -> FoldError {
        FoldError::Store(error)
    }
}

/// Whether less at once may do.
fn is_slow(error: &StoreError) -> bool {
    matches!(error, StoreError::Slow(_))
}

fn conflict(event: &Event, run_id: RunId, fingerprint: RequestFingerprint) -> Conflict {
    Conflict {
        tenant: event.tenant.clone(),
        workspace: event.workspace.clone(),
        event_id: event.event_id,
        run_id,
        fingerprint,
        request: event.payload.clone(),
        at: event.recorded_at.unix_us(),
    }
}

pub(super) fn run_of(event: &Event) -> Option<RunId> {
    event
        .correlation_id
        .map(|id| RunId::from_bytes(id.into_bytes()))
}

/// Where the plan lies that a PlanCreated names.
fn plan_of(event: &Event) -> Option<PlanLocation> {
    if event.kind() != Some(EventType::PlanCreated) {
        return None;
    }
    let (body, _) = wire::body_of(&event.payload).ok()?;
    let (tenant, workspace) = (event.tenant.clone(), event.workspace.clone());
    Some(PlanLocation {
        plan_id: plan_id(&body)?,
        tenant,
        workspace,
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

/// Whether this version can fold it. What only a newer one knows must wait for it.
fn is_known(event: &Event) -> bool {
    event.kind().is_some() && event.version == 1
}
