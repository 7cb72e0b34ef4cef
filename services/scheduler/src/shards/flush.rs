//! One flush: load, fold, store, publish, reply.
//!
//! [`Lane::flush`] repeats [`Lane::try_flush`] until it succeeds, the error is permanent or its
//! time is over. A failed flush may have changed runs in memory that were not stored;
//! [`Lane::recover`] evicts or reloads them before the next try. When one of several submissions
//! may have caused the error (a known key, a bad value, too much work for one statement), each
//! submission is flushed alone, so that only the faulty one fails.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use servo_model::{AttemptId, Position, RunId, ShardId, TenantId, Timestamp};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{HeldBatch, LoopTx, NewEvent, StoreError};
use tracing::{Instrument, debug_span};
use uuid::Uuid;

use super::clock::DatabaseClock;
use super::command::{
    Applied, Command, CommandResult, RunEvent, Submission, SubmitError, UnplannedRun,
};
use super::good_versions::with_good_version;
use super::lane::{Lane, reject};
use super::stored_event::{new_event, too_large};
use crate::core::{self, Changes, InUse, Resolvable, RunView, Verdict};
use crate::store::Statement;
use crate::store::flush::{self, ChangedRun, Conflict, FlushRows, NewRunRow, Resolution};
use crate::transition_log;
use crate::wire;

/// How long a flush is retried before its callers get an error.
const RETRY_FOR: Duration = Duration::from_secs(5);
/// How long submissions are flushed one by one. When each of them is slow, the last ones get an
/// error instead of waiting without end.
const SPLIT_FOR: Duration = Duration::from_secs(10);
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// The result of folding submissions, before it is stored.
#[derive(Default)]
pub(super) struct PendingFlush {
    pub(super) changes: BTreeMap<RunId, Changes>,
    pub(super) new_runs: HashMap<RunId, NewRunRow>,
    /// The fingerprints of the plans that runs received.
    pub(super) plan_fingerprints: HashMap<RunId, String>,
    pub(super) conflicts: Vec<Conflict>,
    /// Runs without a plan.
    pub(super) unplanned: Vec<UnplannedRun>,
    /// The events to append, in order.
    pub(super) events: Vec<NewEvent>,
    /// The watermark of each shard after the flush.
    pub(super) watermarks: HashMap<ShardId, Position>,
    /// The flush contains only claims of pulled tasks, so it is committed asynchronously and
    /// Postgres may lose it (ADR 7). `try_flush` begins with true; any other event makes it false.
    pub(super) claims_only: bool,
    /// Events with quarantined outputs whose partitions all have a promoted version.
    pub(super) good_versions: HashSet<Uuid>,
    /// The materializations that commands resolve.
    pub(super) resolvable: HashMap<AttemptId, Resolvable>,
    pub(super) resolutions: Vec<Resolution>,
    /// The usage of tenants with limits; a lock keeps the counts valid until the flush is stored.
    pub(super) in_use: HashMap<TenantId, InUse>,
}

impl Lane {
    /// Flushes the submissions and replies to their callers.
    pub(super) async fn flush(&mut self, submissions: Vec<Submission>) {
        let runs: HashSet<RunId> = submissions
            .iter()
            .flat_map(|submission| submission.commands.iter().map(Command::run_id))
            .collect();
        self.flush_until_done(submissions).await;
        // Runs that had ended before are loaded for their commands and may not have changed, so
        // `publish` does not evict all of them.
        self.evict_ended_runs(runs);
    }

    async fn flush_until_done(&mut self, mut submissions: Vec<Submission>) {
        if submissions.is_empty() {
            return;
        }
        let begun = Instant::now();
        self.last_flush = Some(begun.into());
        loop {
            self.drop_expired_shards(&submissions);
            let (held, foreign): (Vec<_>, Vec<_>) = submissions
                .into_iter()
                .partition(|submission| self.shards.contains_key(&submission.shard));
            reject(foreign, &SubmitError::NotHeld);
            submissions = held;
            if submissions.is_empty() {
                return;
            }
            let span = debug_span!("servo.scheduler_flush", submissions = submissions.len());
            let error = match self.try_flush(&submissions).instrument(span).await {
                Ok(answers) => {
                    submissions
                        .into_iter()
                        .zip(answers)
                        .for_each(|(submission, applied)| drop(submission.reply.send(Ok(applied))));
                    return;
                }
                Err(error) => error,
            };
            if may_be_caused_by_one(&error) && submissions.len() > 1 {
                let until = Instant::now() + SPLIT_FOR;
                return Box::pin(self.flush_one_by_one(submissions, until)).await;
            }
            self.recover(&submissions, &error).await;
            if begun.elapsed() > RETRY_FOR
                || matches!(
                    error,
                    StoreError::Database(_)
                        | StoreError::KeyTaken(_)
                        | StoreError::Refused(_)
                        | StoreError::Aborted
                )
            {
                if matches!(error, StoreError::KeyTaken(_)) {
                    return reject(submissions, &SubmitError::KeyTaken);
                }
                tracing::error!(%error, "flush failed");
                return reject(submissions, &SubmitError::Unavailable(error.to_string()));
            }
            tracing::debug!(%error, "retrying a flush");
            if error.is_transient() || matches!(error, StoreError::ClockOff(_)) {
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }

    /// Drops shards whose lease has expired. Their memory may be out of date, and a refusal is not
    /// stored, so the fence would not stop a wrong one.
    fn drop_expired_shards(&mut self, submissions: &[Submission]) {
        let now = Instant::now();
        for submission in submissions {
            let held = self.shards.get(&submission.shard);
            if held.is_some_and(|held| self.renewals.has_expired(&held.lease, now)) {
                self.drop_shard(submission.shard);
            }
        }
    }

    /// Flushes each submission alone, so that one which the store refuses does not fail the others.
    pub(super) async fn flush_one_by_one(
        &mut self,
        mut submissions: Vec<Submission>,
        until: Instant,
    ) {
        self.evict_runs(
            submissions
                .iter()
                .flat_map(|submission| submission.commands.iter().map(Command::run_id)),
        );
        while !submissions.is_empty() && Instant::now() < until {
            self.flush(vec![submissions.remove(0)]).await;
        }
        self.load_evicted_runs(&submissions).await;
        reject(
            submissions,
            &SubmitError::Unavailable("Postgres is slow; retry in a moment".to_owned()),
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
        self.announce_plans(&pending);
        self.store(&pending, at, lock).await?;
        self.publish(pending);
        Ok(answers)
    }

    fn announce_plans(&mut self, pending: &PendingFlush) {
        for run in pending.plan_fingerprints.keys() {
            if let Some(run) = self
                .shards
                .get(&run.shard())
                .and_then(|held| held.runs.get(run))
            {
                self.streams.announce_plan(run);
            }
        }
    }

    fn fold_command(
        &mut self,
        shard: ShardId,
        command: &Command,
        at: Timestamp,
        pending: &mut PendingFlush,
    ) -> Applied {
        if self
            .shards
            .get(&shard)
            .is_some_and(|held| held.set_aside.contains(&command.run_id()))
        {
            return Applied {
                result: CommandResult::SetAside,
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
        shard: ShardId,
        event: &RunEvent,
        at: Timestamp,
        pending: &mut PendingFlush,
    ) -> Applied {
        let applied = |result: CommandResult, run: Option<RunView>| Applied {
            result,
            event_id: event.event_id,
            run,
        };
        let held = self
            .shards
            .get_mut(&shard)
            .expect("commands are folded only for held shards");
        let mark = *pending.watermarks.entry(shard).or_insert(held.watermark);
        // A run of another tenant is treated as unknown.
        let run = held
            .runs
            .get_mut(&event.run_id)
            .filter(|run| run.header.tenant == event.tenant);
        let Some(run) = run else {
            return applied(CommandResult::RunUnknown, None);
        };
        let body = with_good_version(event, &pending.good_versions);
        let stored = new_event(event, &body, run.header.workspace.as_str(), shard);
        if let Some(too_large) = too_large(&stored) {
            return applied(too_large, None);
        }
        let happened = match wire::from_body(&body, None) {
            Ok(happened) => happened,
            Err(bad) => return applied(CommandResult::Invalid(bad.to_string()), None),
        };
        let changes = pending.changes.entry(event.run_id).or_default();
        let verdict = core::fold(run, &happened, at, changes);
        if !matches!(verdict, Verdict::Folded | Verdict::Late) {
            return applied(CommandResult::Fold(verdict), Some(RunView::of(run)));
        }
        // The claim of a pushed attempt is committed synchronously, because its queue entry must
        // not outlive it.
        pending.claims_only &= matches!(&event.body, Body::DispatchRequested(claim) if claim.mode() != pb::DispatchMode::Push);
        pending.events.push(stored);
        pending.watermarks.insert(shard, mark.next());
        applied(CommandResult::Fold(verdict), Some(RunView::of(run)))
    }

    /// Stores the events, watermarks and rows of a flush with one statement (see
    /// [`store::flush`](crate::store::flush)). `lock` is the transaction that locked the limits of
    /// tenants whose runs start; the statement then runs inside it.
    ///
    /// The statement begins with the fence: it fails as a whole when a lease was lost, or when a
    /// shard contains events that this lane has not folded.
    pub(super) async fn store(
        &mut self,
        pending: &PendingFlush,
        at: Timestamp,
        lock: Option<LoopTx>,
    ) -> Result<(), StoreError> {
        let batch = self.batch(pending, at);
        if batch.is_empty() {
            return Ok(());
        }
        let rows = self.rows(pending, at);
        let begun = Instant::now();
        let statement = flush::statement(&batch, &rows);
        let now = match lock {
            None => self.loops.store_held(&batch, statement).await?,
            Some(lock) => self.store_locked(lock, pending, statement).await?,
        };
        if let Some(bus_doorbell) = self
            .bus_doorbell
            .as_ref()
            .filter(|_| !rows.outbox.is_empty())
        {
            bus_doorbell.ring();
        }
        self.metrics
            .flush_seconds
            .observe(begun.elapsed().as_secs_f64());
        self.metrics
            .flush_events
            .observe(pending.events.len() as f64);
        self.clock = Some(DatabaseClock::at(now));
        for (shard, mark) in &pending.watermarks {
            if let Some(held) = self.shards.get_mut(shard) {
                held.watermark = *mark;
                held.recorded_at = held.recorded_at.max(at);
            }
        }
        Ok(())
    }

    /// The events to append, and the watermarks of shards whose events others appended.
    fn batch<'a>(&'a self, pending: &'a PendingFlush, at: Timestamp) -> HeldBatch<'a> {
        let mut batch = HeldBatch::new(at);
        for (shard, mark) in &pending.watermarks {
            let held = &self.shards[shard];
            if *mark > held.watermark && !pending.events.iter().any(|event| event.shard == *shard) {
                batch.advance(&held.lease, held.watermark, *mark);
            }
        }
        for event in &pending.events {
            let held = &self.shards[&event.shard];
            batch.append(&held.lease, held.watermark, event);
        }
        batch
    }

    fn rows<'a>(&'a self, pending: &'a PendingFlush, at: Timestamp) -> FlushRows<'a> {
        let changed: Vec<ChangedRun<'a>> = pending
            .changes
            .iter()
            .filter(|(_, changes)| !changes.writes_no_row())
            .filter_map(|(run_id, changes)| {
                Some(ChangedRun {
                    run: self.shards[&run_id.shard()].runs.get(run_id)?,
                    changes,
                    new_row: pending.new_runs.get(run_id),
                    plan_fingerprint: pending.plan_fingerprints.get(run_id).map(String::as_str),
                })
            })
            .collect();
        FlushRows {
            outbox: self.outbox_messages(&changed, &pending.watermarks, at),
            changed,
            conflicts: &pending.conflicts,
            resolutions: &pending.resolutions,
            claims_only: pending.claims_only,
        }
    }

    async fn store_locked(
        &self,
        mut lock: LoopTx,
        pending: &PendingFlush,
        statement: Statement<'_>,
    ) -> Result<Timestamp, StoreError> {
        let held = pending
            .watermarks
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

    /// Publishes a stored flush: notifies dispatchers and watchers, arms timers, requests plans,
    /// and evicts ended runs.
    pub(super) fn publish(&mut self, pending: PendingFlush) {
        // A conflict or a resolution changes no run, but watchers of the run see its event.
        let appended = pending
            .events
            .iter()
            .filter_map(|event| event.correlation_id);
        let appended = appended.map(|id| RunId::from_bytes(id.into_bytes()));
        self.run_watchers
            .notify(appended.chain(pending.changes.keys().copied()));
        for waiting in pending.unplanned {
            let run = self
                .shards
                .get(&waiting.run_id.shard())
                .and_then(|held| held.runs.get(&waiting.run_id));
            // The plan may have arrived in the same flush.
            let unplanned = run.filter(|run| run.plan.is_none());
            let header = unplanned.map(|run| (run.header.tenant.clone(), run.header.created_at));
            if let Some((tenant, created_at)) = header {
                self.plan_or_wait(tenant, created_at, waiting);
            }
        }
        let mut freed = BTreeSet::new();
        for (run_id, changes) in &pending.changes {
            let Some(held) = self.shards.get_mut(&run_id.shard()) else {
                continue;
            };
            let Some(run) = held.runs.get(run_id) else {
                continue;
            };
            self.streams.record(run, changes);
            self.in_flight.update(run);
            self.metrics.record(run, changes);
            transition_log::log(run, changes);
            if let (true, Some(deadline)) =
                (pending.new_runs.contains_key(run_id), run.header.deadline)
            {
                self.timers.arm(deadline, *run_id, None);
            }
            if let Some(plan) = &run.plan {
                for task_ref in &changes.due {
                    let due = run.task_row(*task_ref).and_then(|task_row| {
                        core::due_of(task_row, plan.settings(task_ref.ordinal), None)
                    });
                    due.into_iter()
                        .for_each(|due| self.timers.arm(due.at, *run_id, Some(*task_ref)));
                }
            }
            if run.plan.is_some() || run.ended_at.is_some() {
                self.unplanned_runs
                    .remove(&run.header.tenant, run.header.created_at, *run_id);
            }
            if run.ended_at.is_some()
                && let Some(ended) = held.runs.remove(run_id)
            {
                self.in_flight.remove(*run_id);
                freed.extend(changes.run.then_some(ended.header.tenant));
            }
        }
        freed
            .iter()
            .for_each(|tenant| self.release_capacity(tenant));
        self.prune_timers();
        self.streams.send_updates();
    }
}

/// Whether the flush may succeed without one of its submissions.
fn may_be_caused_by_one(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::KeyTaken(_) | StoreError::Slow(_) | StoreError::Database(_)
    )
}
