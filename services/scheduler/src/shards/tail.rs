//! What others appended, and what to do when a flush did not get through.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use servo_model::request::RequestFingerprint;
use servo_model::{EventType, RunId, Stream};
use servo_proto::v1::event::Body;
use servo_store::{Event, Lease, ReadError, StoreError, Timestamp, query};

use super::clock::DatabaseClock;
use super::flush::Draft;
use super::lane::Lane;
use super::load;
use super::new_run::unplanned;
use super::plans::StoredPlan;
use super::resolutions::Resolution;
use super::rows::{Born, Conflict};
use super::shard::{Shard, run_number};
use super::work::{Ask, Work};
use crate::core::{Changes, Run, Verdict, fold};
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
        if let Err(error) = self.take_or_fail(lease).await {
            tracing::warn!(%error, shard = number, "a shard could not be loaded; it is tried again with its next lease");
            self.forget_shard(number);
        }
    }

    pub(super) async fn take_or_fail(&mut self, lease: Lease) -> Result<(), StoreError> {
        let number = lease.shard();
        let lost =
            || StoreError::LeaseLost(format!("the lease on shard {number} is no longer held"));
        let marks = self.marks(&[number], &lease).await?;
        let (_, _, watermark, _, recorded_at, _) = *marks
            .iter()
            .find(|(_, _, _, epoch, ..)| *epoch == lease.epoch())
            .ok_or_else(lost)?;
        self.learn_epochs().await?;
        self.learn_starts().await?;
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
            self.plan_again(run, request);
        }
        let shard = Shard {
            lease,
            watermark,
            recorded_at: recorded_at.unix_us(),
            runs: Default::default(),
            set_aside: set_aside.iter().map(StoredRun::id).collect(),
        };
        self.shards.insert(number, shard);
        self.keep_runs(runs);
        self.catch_up(number).await?;
        self.tell_all(number);
        Ok(())
    }

    /// Whoever held the shard before may have gone before the plan came.
    fn plan_again(&mut self, run: &Run, request: &[u8]) {
        if let Ok((Body::RunRequested(asked), _)) = wire::body_of(request) {
            let (tenant, created_at) = (run.header.tenant.clone(), run.header.created_at);
            unplanned(run, &asked)
                .into_iter()
                .for_each(|waiting| self.plan_or_wait(tenant.clone(), created_at, waiting));
        }
    }

    /// Which dispatchers were replaced, also while others held this shard: their claims no longer count.
    async fn learn_epochs(&mut self) -> Result<(), StoreError> {
        let select =
            query(include_str!("../store/admission_epochs.sql")).bind(Stream::Dispatch.code());
        let epochs: Vec<(i16, i64)> = self.loops.all(select).await?;
        for (admission_shard, epoch) in epochs {
            self.gates
                .learn(admission_shard, u64::try_from(epoch).unwrap_or(0));
        }
        Ok(())
    }

    /// Which attempts may have been erased together with their claims.
    async fn learn_starts(&mut self) -> Result<(), StoreError> {
        let starts: Vec<(Timestamp,)> = self.loops.all(query("SELECT ledger.note_start()")).await?;
        self.gates
            .learn_starts(starts.into_iter().map(|(start,)| start.unix_us()).collect());
        Ok(())
    }

    /// Folds what others appended to the shard.
    pub(super) async fn look(&mut self, shard: i16) {
        if !self.shards.contains_key(&shard) {
            return;
        }
        if let Err(error) = self.catch_up(shard).await {
            tracing::warn!(%error, shard, "what others appended could not be folded; the shard is loaded again");
            self.retake(shard).await;
        }
    }

    /// Makes memory agree with the rows again after a flush that did not get through.
    pub(super) async fn recover(&mut self, works: &[Work], error: &StoreError) {
        let shards: HashSet<i16> = works.iter().map(|work| work.shard).collect();
        match error {
            // Nothing was written and the leases stand: only what was folded in vain is wrong.
            StoreError::Behind(_)
            | StoreError::ClockOff(_)
            | StoreError::Raced(_)
            | StoreError::Slow(_)
            | StoreError::KeyTaken(_) => {
                self.forget_runs(
                    works
                        .iter()
                        .flat_map(|work| work.asks.iter().map(Ask::run_id)),
                );
                self.clock = None;
                for shard in shards {
                    self.look(shard).await;
                }
                // Read again at once, or their timers would fall on nothing.
                let asks = works.iter().flat_map(|work| &work.asks);
                if let Err(error) = self
                    .load_missing(asks.map(|ask| (ask.run_id(), ask.tenant())))
                    .await
                {
                    tracing::warn!(%error, "runs could not be read again; their shards are loaded anew");
                    for work in works {
                        self.retake(work.shard).await;
                    }
                }
            }
            // The keeper finds out what is still ours, and gives it to us anew.
            StoreError::LeaseLost(_) => shards
                .into_iter()
                .for_each(|shard| self.forget_shard(shard)),
            _ => {
                for shard in shards {
                    self.retake(shard).await;
                }
            }
        }
    }

    async fn retake(&mut self, shard: i16) {
        if let Some(Shard { lease, .. }) = self.shards.remove(&shard) {
            // Whoever waits is found again with the shard, and a plan that was on its way may never come.
            self.waiting.forget_shard(shard);
            self.gates.gone(shard);
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
                    self.forget_shard(shard);
                    return Ok(());
                }
            };
            if events.is_empty() {
                return Ok(());
            }
            let readable = events.iter().take_while(|event| is_known(event)).count();
            self.fold_foreign(shard, &events[..readable]).await?;
            if let Some(event) = events.get(readable) {
                let (kind, version) = (event.type_code, event.version);
                tracing::error!(
                    shard,
                    kind,
                    version,
                    "an event is of a kind that this version does not know; the shard is given back"
                );
                self.unreadable.add(shard);
                self.forget_shard(shard);
                return Ok(());
            }
            if (events.len() as i64) < EVENTS_PER_PASS {
                return Ok(());
            }
        }
    }

    /// Folds these. A run of which one cannot be folded, or stored, is set aside, and the others go on.
    async fn fold_foreign(&mut self, shard: i16, events: &[Event]) -> Result<(), StoreError> {
        let Err(stuck) = self.try_foreign(shard, events).await else {
            return Ok(());
        };
        // What was folded in vain is read again.
        self.forget_runs(events.iter().filter_map(run_of));
        match (stuck, events) {
            (Stuck::Event(at, fault), _) => {
                Box::pin(self.fold_foreign(shard, &events[..at])).await?;
                self.set_aside(shard, &events[at], &fault).await?;
                Box::pin(self.fold_foreign(shard, &events[at + 1..])).await
            }
            (Stuck::Store(error), [only]) if error.is_about_values() => {
                self.set_aside(shard, only, &error.to_string()).await
            }
            (Stuck::Store(error), [_, _, ..]) if error.is_about_values() || is_slow(&error) => {
                let (first, second) = events.split_at(events.len() / 2);
                Box::pin(self.fold_foreign(shard, first)).await?;
                Box::pin(self.fold_foreign(shard, second)).await
            }
            (Stuck::Store(error), _) => Err(error),
        }
    }

    async fn try_foreign(&mut self, shard: i16, events: &[Event]) -> Result<(), Stuck> {
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
        let mut draft = Draft::default();
        for (index, event) in events.iter().enumerate() {
            draft.marks.insert(shard, event.position);
            // Memory that a panic left half changed is forgotten with the rest of this batch.
            let folded = catch_unwind(AssertUnwindSafe(|| self.fold_one(shard, event, &mut draft)));
            folded
                .unwrap_or_else(|_| Err("folding it panics".to_owned()))
                .map_err(|fault| Stuck::Event(index, fault))?;
        }
        self.store(&draft, at, None).await?;
        if let (Some(held), Some(last)) = (self.shards.get_mut(&shard), events.last()) {
            held.recorded_at = held.recorded_at.max(last.recorded_at.unix_us());
        }
        self.publish(draft);
        Ok(())
    }

    fn fold_one(&mut self, shard: i16, event: &Event, draft: &mut Draft) -> Result<(), String> {
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
            (Body::RunRequested(asked), Some(run)) => {
                let fingerprint = wire::fingerprint(&asked).map_err(|bad| bad.to_string())?;
                // Nothing of it changes, but one that has ended is forgotten again.
                draft.changes.entry(run_id).or_default();
                if *fingerprint.digest().as_bytes() != run.header.fingerprint {
                    draft.conflicts.push(conflict(event, run_id, fingerprint));
                }
                Ok(())
            }
            (Body::RunRequested(asked), None) => {
                let number = run_number(shard, event.position);
                let header = wire::header(
                    &event.tenant,
                    &event.workspace,
                    number,
                    &asked,
                    trace.as_ref(),
                    at,
                );
                let run = Run::requested(header.map_err(|bad| bad.to_string())?);
                draft.born.insert(
                    run_id,
                    Born::new(event.event_id, &asked, event.payload.clone()),
                );
                draft.unplanned.extend(unplanned(&run, &asked));
                held.runs.insert(run_id, run);
                draft.changes.insert(
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
                draft.changes.entry(run_id).or_default();
                let resolution = Resolution::of(&resolved, run, event.event_id, at);
                draft
                    .resolutions
                    .push(resolution.ok_or("it names no version or no decision")?);
                Ok(())
            }
            (body, Some(run)) => {
                let graph = plan_id(&body).and_then(|plan_id| self.plans.get(&plan_id));
                let happened =
                    wire::from_body(&body, graph.as_ref()).map_err(|bad| bad.to_string())?;
                let verdict = fold(run, &happened, at, draft.changes.entry(run_id).or_default());
                if let (Body::PlanCreated(created), Verdict::Folded) = (body, verdict) {
                    draft.planned.insert(run_id, created.plan_fingerprint);
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
enum Stuck {
    /// The one at this place, for what it says.
    Event(usize, String),
    Store(StoreError),
}

impl From<StoreError> for Stuck {
    fn from(error: StoreError) -> Stuck {
        Stuck::Store(error)
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
fn plan_of(event: &Event) -> Option<StoredPlan> {
    if event.kind() != Some(EventType::PlanCreated) {
        return None;
    }
    let (body, _) = wire::body_of(&event.payload).ok()?;
    let (tenant, workspace) = (event.tenant.clone(), event.workspace.clone());
    Some(StoredPlan {
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
