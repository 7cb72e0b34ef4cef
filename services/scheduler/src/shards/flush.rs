//! One flush: load, fold, store in one statement, answer.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use prost::Message as _;
use servo_model::{AttemptId, RunId, TenantId};
use servo_proto::v1::event::Body;
use servo_proto::{kind_of, v1 as pb};
use servo_store::sqlx::Postgres;
use servo_store::sqlx::postgres::PgArguments;
use servo_store::sqlx::query::Query;
use servo_store::{HeldBatch, LoopTx, NewEvent, StoreError, Timestamp};
use tracing::{Instrument, debug_span};
use uuid::Uuid;

use super::command::{
    Applied, Command, CommandOutcome, RunEvent, RunView, Submission, SubmitError, UnplannedRun,
};
use super::lane::{Lane, refuse};
use super::load;
use super::outbox::{self, OutboxMessage};
use super::resolutions::Resolution;
use super::rows::{self, ChangedRun, Conflict, NewRunRow};
use crate::core::{Changes, InUse, Resolvable, Run, Verdict, fold};
use crate::store::{StoredRun, runs_by_id};
use crate::transition_log;
use crate::wire;

/// How long a flush is repeated before its callers are told that it did not happen.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long works are tried one by one; where each of them takes long, the last would wait for ever.
const SPLIT_PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// A flush in the making: what was folded, and what must be stored for it.
#[derive(Default)]
pub(super) struct PendingFlush {
    pub(super) changes: BTreeMap<RunId, Changes>,
    pub(super) born: HashMap<RunId, NewRunRow>,
    /// The shapes of the plans that runs got.
    pub(super) planned: HashMap<RunId, String>,
    pub(super) conflicts: Vec<Conflict>,
    /// Runs that wait for a plan.
    pub(super) unplanned: Vec<UnplannedRun>,
    /// Appended, in order.
    pub(super) events: Vec<NewEvent>,
    /// Where each shard's folded events end.
    pub(super) marks: HashMap<i16, i64>,
    /// Nothing but claims: may be lost with Postgres.
    pub(super) claims_only: bool,
    /// Events about quarantined outputs for which readers keep a good version.
    pub(super) good_versions: HashSet<Uuid>,
    /// What is decided about, as it stands.
    pub(super) resolvable: HashMap<AttemptId, Resolvable>,
    pub(super) resolutions: Vec<Resolution>,
    /// What tenants with limits use; kept true by a lock until it is stored.
    pub(super) in_use: HashMap<TenantId, InUse>,
}

impl Lane {
    /// Does all of it, or answers why not.
    pub(super) async fn flush(&mut self, submissions: Vec<Submission>) {
        if submissions.is_empty() {
            return;
        }
        let begun = Instant::now();
        self.flushed = Some(begun.into());
        let mut submissions = submissions;
        loop {
            self.drop_expired_shards(&submissions);
            let (held, foreign): (Vec<_>, Vec<_>) = submissions
                .into_iter()
                .partition(|submission| self.shards.contains_key(&submission.shard));
            refuse(foreign, &SubmitError::NotHeld);
            submissions = held;
            if submissions.is_empty() {
                return;
            }
            let tick = debug_span!("servo.scheduler_tick", submissions = submissions.len());
            let error = match self.try_flush(&submissions).instrument(tick).await {
                Ok(answers) => {
                    submissions
                        .into_iter()
                        .zip(answers)
                        .for_each(|(submission, done)| drop(submission.reply.send(Ok(done))));
                    return;
                }
                Err(error) => error,
            };
            if may_be_caused_by_one(&error) && submissions.len() > 1 {
                return Box::pin(self.flush_one_by_one(submissions)).await;
            }
            self.recover(&submissions, &error).await;
            if begun.elapsed() > PATIENCE
                || matches!(
                    error,
                    StoreError::Database(_)
                        | StoreError::KeyTaken(_)
                        | StoreError::Refused(_)
                        | StoreError::Aborted
                )
            {
                if matches!(error, StoreError::KeyTaken(_)) {
                    return refuse(submissions, &SubmitError::KeyTaken);
                }
                tracing::error!(%error, "a flush failed");
                return refuse(submissions, &SubmitError::Unavailable(error.to_string()));
            }
            tracing::debug!(%error, "a flush is repeated");
            if error.is_transient() || matches!(error, StoreError::ClockOff(_)) {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Memory of a shard whose lease has run out may be old, and a refusal is stored nowhere: no fence would stop it.
    fn drop_expired_shards(&mut self, submissions: &[Submission]) {
        let now = Instant::now();
        for submission in submissions {
            let held = self.shards.get(&submission.shard);
            if held.is_some_and(|held| self.renewals.has_expired(&held.lease, now)) {
                self.drop_shard(submission.shard);
            }
        }
    }

    /// Finds out whose event the store refuses, or has no time for, without keeping the others from their answer.
    async fn flush_one_by_one(&mut self, mut submissions: Vec<Submission>) {
        let begun = Instant::now();
        self.evict_runs(
            submissions
                .iter()
                .flat_map(|submission| submission.commands.iter().map(Command::run_id)),
        );
        while !submissions.is_empty() && begun.elapsed() <= SPLIT_PATIENCE {
            self.flush(vec![submissions.remove(0)]).await;
        }
        refuse(
            submissions,
            &SubmitError::Unavailable("Postgres is slow; try again in a moment".to_owned()),
        );
    }

    async fn try_flush(
        &mut self,
        submissions: &[Submission],
    ) -> Result<Vec<Vec<Applied>>, StoreError> {
        let commands = submissions
            .iter()
            .flat_map(|submission| &submission.commands);
        self.load_missing(commands.map(|command| (command.run_id(), command.tenant())))
            .await?;
        let good_versions = self.good_versions(submissions).await?;
        let resolvable = self.resolvable(submissions).await?;
        let mut at = self
            .time_for(submissions.iter().map(|submission| submission.shard))
            .await?;
        let (mut lock, mut in_use) = (None, HashMap::new());
        if let Some(counted) = self.count_runs(submissions).await? {
            at = at.max(counted.at);
            (lock, in_use) = (Some(counted.tx), counted.in_use);
        }
        let mut pending = PendingFlush {
            claims_only: true,
            good_versions,
            resolvable,
            in_use,
            ..PendingFlush::default()
        };
        let mut answers = Vec::with_capacity(submissions.len());
        for submission in submissions {
            answers.push(
                submission
                    .commands
                    .iter()
                    .map(|command| self.fold_command(submission.shard, command, at, &mut pending))
                    .collect(),
            );
        }
        self.announce_plan(&pending);
        self.store(&pending, at, lock).await?;
        self.publish(pending);
        Ok(answers)
    }

    fn announce_plan(&mut self, pending: &PendingFlush) {
        for run in pending.planned.keys() {
            if let Some(run) = self
                .shards
                .get(&run.shard())
                .and_then(|held| held.runs.get(run))
            {
                self.streams.announce_plan(run);
            }
        }
    }

    /// The time of a flush: the database's, and not before what its shards recorded last.
    pub(super) async fn time_for(
        &mut self,
        shards: impl Iterator<Item = i16>,
    ) -> Result<i64, StoreError> {
        let clock = match self.clock {
            Some(clock) => clock,
            None => self.set_clock().await?,
        };
        let recorded = shards
            .filter_map(|shard| Some(self.shards.get(&shard)?.recorded_at))
            .max();
        Ok(clock.now().max(recorded.unwrap_or(0)))
    }

    /// Loads what is not in memory of these runs, each with its tenant if that is known.
    pub(super) async fn load_missing<'a>(
        &mut self,
        runs: impl Iterator<Item = (RunId, &'a str)>,
    ) -> Result<(), StoreError> {
        let known = |run: &RunId| {
            self.shards
                .get(&run.shard())
                .is_some_and(|shard| shard.knows(run))
        };
        let mut missing: HashMap<RunId, &str> = HashMap::new();
        for (run, tenant) in runs.filter(|(run, _)| !known(run)) {
            let noted = missing.entry(run).or_insert(tenant);
            if noted.is_empty() {
                *noted = tenant;
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let wanted: Vec<(&str, Uuid)> = missing
            .iter()
            .map(|(run, tenant)| (*tenant, Uuid::from_bytes(*run.as_bytes())))
            .collect();
        let rows = runs_by_id(&self.loops, &wanted).await?;
        let (set_aside, rows): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.set_aside.is_some());
        for run in set_aside.iter().map(StoredRun::id) {
            if let Some(held) = self.shards.get_mut(&run.shard()) {
                held.set_aside.insert(run);
            }
        }
        let runs = load::restore(&self.loops, &self.plans, rows).await?;
        self.insert_runs(runs);
        Ok(())
    }

    pub(super) fn insert_runs(&mut self, runs: Vec<Run>) {
        for run in runs {
            self.arm_run(&run);
            self.in_flight.note(&run);
            if let Some(shard) = self.shards.get_mut(&run.header.run_id.shard()) {
                shard.runs.insert(run.header.run_id, run);
            }
        }
    }

    fn fold_command(
        &mut self,
        shard: i16,
        command: &Command,
        at: i64,
        pending: &mut PendingFlush,
    ) -> Applied {
        if self
            .shards
            .get(&shard)
            .is_some_and(|held| held.set_aside.contains(&command.run_id()))
        {
            return Applied {
                outcome: CommandOutcome::SetAside,
                event_id: command.event_id(),
                run: None,
            };
        }
        match command {
            Command::Run(new) => self.fold_new_run(shard, new, at, pending),
            Command::Plan(plan) => self.fold_plan(shard, plan, at, pending),
            Command::Event(event) => match &event.body {
                Body::QuarantineResolved(resolved) => {
                    self.fold_resolution(shard, event, resolved, at, pending)
                }
                _ => self.fold_event(shard, event, at, pending),
            },
            Command::Claim(claim) => self.fold_claim(shard, claim, at, pending),
            Command::Enqueued(enqueued) => self.fold_enqueued(shard, enqueued, at, pending),
        }
    }

    pub(super) fn fold_event(
        &mut self,
        shard: i16,
        event: &RunEvent,
        at: i64,
        pending: &mut PendingFlush,
    ) -> Applied {
        let applied = |outcome: CommandOutcome, run: Option<RunView>| Applied {
            outcome,
            event_id: event.event_id,
            run,
        };
        let held = self
            .shards
            .get_mut(&shard)
            .expect("only asks for held shards come here");
        let mark = *pending.marks.entry(shard).or_insert(held.watermark);
        // Another tenant's run is as good as none.
        let run = held
            .runs
            .get_mut(&event.run_id)
            .filter(|run| run.header.tenant.as_str() == event.tenant);
        let Some(run) = run else {
            return applied(CommandOutcome::RunUnknown, None);
        };
        let body = with_good_version(event, &pending.good_versions);
        let stored = new_event(event, &body, run.header.workspace.as_str(), shard);
        if let Some(too_large) = too_large(&stored) {
            return applied(too_large, None);
        }
        let happened = match wire::from_body(&body, None) {
            Ok(happened) => happened,
            Err(bad) => return applied(CommandOutcome::Invalid(bad.to_string()), None),
        };
        let changes = pending.changes.entry(event.run_id).or_default();
        let verdict = fold(run, &happened, at, changes);
        if !matches!(verdict, Verdict::Folded | Verdict::Late) {
            return applied(CommandOutcome::Fold(verdict), Some(RunView::of(run)));
        }
        // What goes to a queue must not outlive its claim.
        pending.claims_only &= matches!(&event.body, Body::DispatchRequested(claim) if claim.mode() != pb::DispatchMode::Push);
        pending.events.push(stored);
        pending.marks.insert(shard, mark + 1);
        applied(CommandOutcome::Fold(verdict), Some(RunView::of(run)))
    }

    /// One statement for all of it; under a lock on tenants' limits if runs of theirs start.
    pub(super) async fn store(
        &mut self,
        pending: &PendingFlush,
        at: i64,
        lock: Option<LoopTx>,
    ) -> Result<(), StoreError> {
        let mut batch = HeldBatch::new(Timestamp::from_unix_us(at));
        let mut changed = Vec::with_capacity(pending.changes.len());
        for (shard, mark) in &pending.marks {
            let held = &self.shards[shard];
            if *mark > held.watermark && !pending.events.iter().any(|event| event.shard == *shard) {
                batch.advance(&held.lease, held.watermark, *mark);
            }
        }
        for event in &pending.events {
            let held = &self.shards[&event.shard];
            batch.append(&held.lease, held.watermark, event);
        }
        if batch.is_empty() {
            return Ok(());
        }
        for (run_id, changes) in pending
            .changes
            .iter()
            .filter(|(_, changes)| !changes.is_empty())
        {
            let Some(run) = self.shards[&run_id.shard()].runs.get(run_id) else {
                continue;
            };
            changed.push(ChangedRun {
                run,
                changes,
                born: pending.born.get(run_id),
                plan_fingerprint: pending.planned.get(run_id).map(String::as_str),
            });
        }
        let begun = Instant::now();
        let news = self.news(&changed, &pending.marks, at);
        let statement = rows::statement(
            !pending.claims_only,
            &batch,
            &changed,
            &pending.conflicts,
            &pending.resolutions,
            &news,
        );
        let now = match lock {
            None => self.loops.store_held(&batch, statement).await?,
            Some(lock) => self.store_locked(lock, pending, statement).await?,
        };
        if let Some(listeners) = self.listeners.as_ref().filter(|_| !news.is_empty()) {
            listeners.tell();
        }
        self.metrics
            .flush_seconds
            .observe(begun.elapsed().as_secs_f64());
        self.metrics
            .flush_events
            .observe(pending.events.len() as f64);
        self.clock = Some(super::clock::DatabaseClock::at(now));
        for (shard, mark) in &pending.marks {
            if let Some(held) = self.shards.get_mut(shard) {
                (held.watermark, held.recorded_at) = (*mark, held.recorded_at.max(at));
            }
        }
        Ok(())
    }

    async fn store_locked(
        &self,
        mut lock: LoopTx,
        pending: &PendingFlush,
        statement: Query<'_, Postgres, PgArguments>,
    ) -> Result<Timestamp, StoreError> {
        let held = pending
            .marks
            .keys()
            .filter_map(|shard| self.shards.get(shard));
        if let Some(stale) = held
            .map(|shard| &shard.lease)
            .find(|lease| !self.loops.is_current(lease))
        {
            let lost = format!(
                "the lease on shard {} was acquired over a connection that is gone",
                stale.shard()
            );
            return Err(StoreError::LeaseLost(lost));
        }
        let (now,): (Timestamp,) = lock.one(statement).await?;
        lock.commit().await?;
        Ok(now)
    }

    /// What the bus is told of a flush.
    fn news(
        &self,
        changed: &[ChangedRun<'_>],
        marks: &HashMap<i16, i64>,
        at: i64,
    ) -> Vec<OutboxMessage> {
        let message = changed.iter().filter(|_| self.listeners.is_some());
        let position =
            |changed: &ChangedRun<'_>| marks.get(&changed.run.header.run_id.shard()).copied();
        message
            .filter_map(|changed| outbox::news(changed, position(changed)?, at))
            .collect()
    }

    /// Tells the dispatchers and whoever watches, arms timers, and forgets what has ended.
    pub(super) fn publish(&mut self, pending: PendingFlush) {
        self.run_watchers.ring(pending.changes.keys());
        for waiting in pending.unplanned {
            let run = self
                .shards
                .get(&waiting.run_id.shard())
                .and_then(|held| held.runs.get(&waiting.run_id));
            // Its plan may have come right behind it.
            let unplanned = run.filter(|run| run.plan.is_none());
            let header = unplanned.map(|run| (run.header.tenant.clone(), run.header.created_at));
            if let Some((tenant, created_at)) = header {
                self.plan_or_wait(tenant, created_at, waiting);
            }
        }
        let mut left = BTreeSet::new();
        for (run_id, changes) in &pending.changes {
            let Some(held) = self.shards.get_mut(&run_id.shard()) else {
                continue;
            };
            let Some(run) = held.runs.get(run_id) else {
                continue;
            };
            self.streams.tell(run, changes);
            self.in_flight.note(run);
            self.metrics.note(run, changes);
            transition_log::log(run, changes);
            if let (true, Some(deadline)) = (pending.born.contains_key(run_id), run.header.deadline)
            {
                self.timers.arm(deadline, *run_id, None);
            }
            if let Some(plan) = &run.plan {
                for task_ref in &changes.due {
                    let due = run.task_row(*task_ref).and_then(|task_row| {
                        crate::core::due_of(task_row, plan.settings(task_ref.ordinal), None)
                    });
                    due.into_iter()
                        .for_each(|due| self.timers.arm(due.at, *run_id, Some(*task_ref)));
                }
            }
            if run.plan.is_some() || run.ended_at.is_some() {
                self.waiting
                    .remove(&run.header.tenant, run.header.created_at, *run_id);
            }
            if run.ended_at.is_some()
                && let Some(ended) = held.runs.remove(run_id)
            {
                self.in_flight.forget(*run_id);
                left.extend(changes.run.then_some(ended.header.tenant));
            }
        }
        left.iter().for_each(|tenant| self.release_capacity(tenant));
        self.prune_timers();
        self.streams.send();
    }
}

/// Whether the same without one of the works may succeed.
fn may_be_caused_by_one(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::KeyTaken(_) | StoreError::Slow(_) | StoreError::Database(_)
    )
}

/// A fold knows only what stands in events, so what was found out about other runs is written there.
fn with_good_version<'a>(event: &'a RunEvent, good: &HashSet<Uuid>) -> Cow<'a, Body> {
    match &event.body {
        Body::TaskFinished(finished) if good.contains(&event.event_id) => {
            Cow::Owned(Body::TaskFinished(pb::TaskFinished {
                has_good_version: true,
                ..finished.clone()
            }))
        }
        body => Cow::Borrowed(body),
    }
}

/// What the ledger would refuse, and with it everything else of the flush.
pub(super) fn too_large(event: &NewEvent) -> Option<CommandOutcome> {
    let (bytes, most) = (event.payload.len(), event.kind.bytes_max());
    (bytes > most).then(|| {
        CommandOutcome::TooLarge(format!(
            "{} has {bytes} bytes and may have {most}; shorten it",
            event.kind.name()
        ))
    })
}

pub(super) fn new_event(event: &RunEvent, body: &Body, workspace: &str, shard: i16) -> NewEvent {
    NewEvent {
        event_id: event.event_id,
        kind: kind_of(body),
        version: 1,
        shard,
        tenant: event.tenant.clone(),
        workspace: workspace.to_owned(),
        idempotency_key: event.idempotency_key.clone(),
        correlation_id: Some(Uuid::from_bytes(*event.run_id.as_bytes())),
        causation_id: None,
        payload: pb::Event {
            version: 1,
            trace: event.trace.clone(),
            body: Some(body.clone()),
        }
        .encode_to_vec(),
    }
}
