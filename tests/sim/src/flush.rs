//! One flush of a scheduler: load, fold with the real core, store in one statement, reply; and the
//! recovery after a failed flush.

use std::collections::{BTreeMap, BTreeSet};

use servo_model::states::TaskState;
use servo_model::{Epoch, Position, RunId, ShardId, Stream, TaskRef, Timestamp};
use servo_scheduler::core::{Changes, Event, Refusal, Run, RunHeader, Verdict, due_of, fold};

use crate::SECOND;
use crate::bugs::Bug;
use crate::env::Env;
use crate::ledger::{Body, Flush, Key, Mark, NewEvent, Recorded, Store, StoreError};
use crate::planned_run::PlannedRun;
use crate::rows::RowWrite;
use crate::scheduler::{
    ClaimRequest, Command, CommandResult, FlushInFlight, Job, Scheduler, Submission,
};

/// How long a flush is retried before its callers get an error.
const RETRY_FOR: i64 = 5 * SECOND;

#[derive(Debug, Default)]
pub struct PendingFlush {
    changes: BTreeMap<RunId, Changes>,
    new_runs: BTreeSet<RunId>,
    events: Vec<NewEvent>,
    marks: BTreeMap<ShardId, Position>,
    claims_only: bool,
}

impl Scheduler {
    pub fn begin(&mut self, job: Job, env: &mut Env) {
        match job {
            Job::Submissions { submissions, since } => {
                self.begin_submissions(submissions, since, env)
            }
            Job::CatchUp {
                shard,
                just_acquired,
            } => self.begin_catch_up(shard, just_acquired, env),
        }
    }

    fn begin_submissions(&mut self, submissions: Vec<Submission>, since: Timestamp, env: &mut Env) {
        let (submissions, foreign): (Vec<_>, Vec<_>) = submissions
            .into_iter()
            .partition(|submission| self.shards.contains_key(&submission.shard));
        foreign
            .into_iter()
            .for_each(|submission| self.refuse(submission, &CommandResult::NotHeld, env));
        if submissions.is_empty() {
            return;
        }
        let mut pending = PendingFlush {
            claims_only: true,
            ..PendingFlush::default()
        };
        if env.database_is_down() {
            let job = Job::Submissions { submissions, since };
            return self.failed(
                FlushInFlight {
                    number: 0,
                    job,
                    pending,
                    answers: Vec::new(),
                    at: env.now,
                },
                StoreError::Broken,
                env,
            );
        }
        self.load_missing(
            submissions
                .iter()
                .flat_map(|submission| submission.commands.iter().map(Command::run)),
            env,
        );
        let recorded = submissions
            .iter()
            .filter_map(|submission| Some(self.shards.get(&submission.shard)?.recorded_at))
            .max();
        let at = env.now.max(recorded.unwrap_or(Timestamp::UNIX_EPOCH));
        let mut answers = Vec::with_capacity(submissions.len());
        for submission in &submissions {
            answers.push(
                submission
                    .commands
                    .iter()
                    .map(|command| {
                        self.fold_command(submission.shard, command, at, &mut pending, env)
                    })
                    .collect(),
            );
        }
        self.store(
            FlushInFlight {
                number: 0,
                job: Job::Submissions { submissions, since },
                pending,
                answers,
                at,
            },
            env,
        );
    }

    fn begin_catch_up(&mut self, shard: ShardId, just_acquired: bool, env: &mut Env) {
        let Some(held) = self.shards.get(&shard) else {
            return;
        };
        if env.database_is_down() {
            return self.drop_shard(shard, env);
        }
        let after = held.watermark;
        let recorded_at = held.recorded_at;
        let events: Vec<Recorded> = env.ledger.shards[shard.index()]
            .events
            .iter()
            .skip(after.get() as usize)
            .cloned()
            .collect();
        if events.is_empty() {
            if just_acquired {
                self.send_snapshots(shard, env);
            }
            return;
        }
        self.load_missing(events.iter().map(|event| event.event.run), env);
        let mut pending = PendingFlush::default();
        let mut position = after;
        for event in &events {
            position = position.next();
            pending.marks.insert(shard, position);
            if env.bug == Bug::EventSkipped && position.get() % 3 == 0 {
                continue;
            }
            self.fold_appended(shard, position, event, &mut pending, env);
        }
        let at = env.now.max(recorded_at);
        self.store(
            FlushInFlight {
                number: 0,
                job: Job::CatchUp {
                    shard,
                    just_acquired,
                },
                pending,
                answers: Vec::new(),
                at,
            },
            env,
        );
    }

    fn fold_appended(
        &mut self,
        shard: ShardId,
        position: Position,
        recorded: &Recorded,
        pending: &mut PendingFlush,
        env: &mut Env,
    ) {
        let Some(held) = self.shards.get_mut(&shard) else {
            return;
        };
        let run_id = recorded.event.run;
        env.note(format_args!(
            "scheduler {} catches up on {shard}/{position} {:?}",
            self.me, recorded.event.key
        ));
        match (&recorded.event.body, held.runs.get_mut(&run_id)) {
            (Body::Requested(_), Some(_)) | (Body::Core(_), None) => {}
            (Body::Requested(header), None) => {
                held.runs.insert(
                    run_id,
                    Run::requested(recorded_header(header, shard, position, recorded.at)),
                );
                pending.new_runs.insert(run_id);
                pending.changes.insert(
                    run_id,
                    Changes {
                        run: true,
                        ..Changes::default()
                    },
                );
            }
            (Body::Core(event), Some(run)) => {
                let event = guarded(event, run, env.bug);
                fold(
                    run,
                    &event,
                    recorded.at,
                    pending.changes.entry(run_id).or_default(),
                );
            }
        }
    }

    fn load_missing(&mut self, runs: impl Iterator<Item = RunId>, env: &mut Env) {
        let known = |run: &RunId| {
            self.shards
                .get(&run.shard())
                .is_none_or(|held| held.runs.contains_key(run))
        };
        let missing: BTreeSet<RunId> = runs.filter(|run| !known(run)).collect();
        let loaded = missing
            .iter()
            .filter_map(|run| Some(env.ledger.rows.get(run)?.restore()))
            .collect();
        self.insert_runs(loaded);
    }

    fn fold_command(
        &mut self,
        shard: ShardId,
        command: &Command,
        at: Timestamp,
        pending: &mut PendingFlush,
        env: &mut Env,
    ) -> CommandResult {
        match command {
            Command::Run(planned) => self.fold_new_run(shard, planned, at, pending, env),
            Command::Event(event) => self.fold_event(shard, event, at, pending, env),
            Command::Claim(claim) => self.fold_claim(shard, claim, at, pending, env),
        }
    }

    fn fold_new_run(
        &mut self,
        shard: ShardId,
        planned: &PlannedRun,
        at: Timestamp,
        pending: &mut PendingFlush,
        env: &mut Env,
    ) -> CommandResult {
        let Some(held) = self.shards.get_mut(&shard) else {
            return CommandResult::NotHeld;
        };
        let mark = *pending.marks.entry(shard).or_insert(held.watermark);
        let run_id = planned.run_id();
        if let Some(run) = held.runs.get(&run_id) {
            let same = run.header.fingerprint == planned.header.fingerprint
                || env.bug == Bug::KeyNotCompared;
            return if same {
                CommandResult::Exists
            } else {
                self.fold_conflict(shard, planned, pending, env)
            };
        }
        let mut run = Run::requested(recorded_header(&planned.header, shard, mark.next(), at));
        let mut changes = Changes {
            run: true,
            ..Changes::default()
        };
        let plan_created = Event::PlanCreated {
            plan: planned.plan.clone(),
        };
        fold(&mut run, &plan_created, at, &mut changes);
        let mut event = |key, body| NewEvent {
            id: env.number(),
            shard,
            run: run_id,
            key,
            body,
            admission_epoch: Epoch::NEVER,
            judged_at: Timestamp::UNIX_EPOCH,
        };
        let request = event(
            Key::Requested(run_id),
            Body::Requested(planned.header.clone()),
        );
        let created = event(Key::Planned(run_id), Body::Core(plan_created));
        pending.events.extend([request, created]);
        pending.marks.insert(shard, mark.plus(2));
        pending.claims_only = false;
        pending.new_runs.insert(run_id);
        pending.changes.insert(run_id, changes);
        held.runs.insert(run_id, run);
        CommandResult::Fold(Verdict::Folded)
    }

    /// Records a conflicting request under the key of an existing run, once; it starts no run.
    fn fold_conflict(
        &mut self,
        shard: ShardId,
        planned: &PlannedRun,
        pending: &mut PendingFlush,
        env: &mut Env,
    ) -> CommandResult {
        let (run, key) = (planned.run_id(), Key::Conflicting(planned.run_id()));
        if env.ledger.has(&key) || pending.events.iter().any(|event| event.key == key) {
            return CommandResult::Conflict;
        }
        let body = Body::Requested(planned.header.clone());
        pending.events.push(NewEvent {
            id: env.number(),
            shard,
            run,
            key,
            body,
            admission_epoch: Epoch::NEVER,
            judged_at: Timestamp::UNIX_EPOCH,
        });
        let mark = pending.marks.entry(shard).or_default();
        *mark = mark.next();
        pending.claims_only = false;
        pending.changes.entry(run).or_default();
        CommandResult::Conflict
    }

    fn fold_event(
        &mut self,
        shard: ShardId,
        event: &NewEvent,
        at: Timestamp,
        pending: &mut PendingFlush,
        env: &mut Env,
    ) -> CommandResult {
        let Some(held) = self.shards.get_mut(&shard) else {
            return CommandResult::NotHeld;
        };
        let mark = *pending.marks.entry(shard).or_insert(held.watermark);
        let Some(run) = held.runs.get_mut(&event.run) else {
            return CommandResult::RunUnknown;
        };
        let Body::Core(happened) = &event.body else {
            return CommandResult::RunUnknown;
        };
        if env.bug == Bug::LostCancel && matches!(happened, Event::CancelRequested { .. }) {
            return CommandResult::Fold(Verdict::Folded);
        }
        let changes = pending.changes.entry(event.run).or_default();
        let mut verdict = fold(run, &guarded(happened, run, env.bug), at, changes);
        if env.bug == Bug::FinishFoldedTwice
            && verdict == Verdict::Duplicate
            && folded_again(run, happened, at, changes)
        {
            verdict = Verdict::Folded;
        }
        env.note(format_args!(
            "scheduler {} folds {:?}: {verdict:?}",
            self.me, event.key
        ));
        if !matches!(verdict, Verdict::Folded | Verdict::Late) {
            return CommandResult::Fold(verdict);
        }
        if let (Bug::SlotFreedTwice, Event::TaskStarted { attempt_id, .. }) = (env.bug, happened) {
            changes.ended.push((*attempt_id, 0));
        }
        pending.claims_only &= matches!(happened, Event::DispatchRequested { .. });
        pending.events.push(event.clone());
        pending.marks.insert(shard, mark.next());
        CommandResult::Fold(verdict)
    }

    fn fold_claim(
        &mut self,
        shard: ShardId,
        claim: &ClaimRequest,
        at: Timestamp,
        pending: &mut PendingFlush,
        env: &mut Env,
    ) -> CommandResult {
        let Some(planned) = env.planned_runs.get(&claim.run).cloned() else {
            return CommandResult::RunUnknown;
        };
        if !self.streams.admits(
            claim.stream_id,
            planned.header.tenant.admission_shard(),
            claim.epoch,
            env.bug,
        ) {
            env.stats.stale_claims += 1;
            return CommandResult::StaleAdmission;
        }
        let run = self
            .shards
            .get(&shard)
            .and_then(|held| held.runs.get(&claim.run));
        let ready = run
            .and_then(|run| run.task_row(claim.task))
            .filter(|task_row| task_row.state == TaskState::Ready);
        if ready.is_some_and(|task_row| task_row.next_attempt(&env.ledger.starts) != claim.attempt)
        {
            return CommandResult::Fold(Verdict::Refused(Refusal::TaskNotReady(claim.attempt)));
        }
        let attempt_id = planned.attempt_id(claim.task, claim.attempt);
        let claimed = Event::DispatchRequested {
            task: claim.task,
            attempt: claim.attempt,
            attempt_id,
            worker: Some(*claim.worker.as_bytes()),
            pushed: planned.is_pushed(claim.task),
            ack_us: planned.plan.settings(claim.task.ordinal).dispatch_ack_us,
        };
        let event = NewEvent {
            id: env.number(),
            shard,
            run: claim.run,
            key: Key::Dispatch(attempt_id),
            body: Body::Core(claimed),
            admission_epoch: claim.epoch,
            judged_at: Timestamp::UNIX_EPOCH,
        };
        self.fold_event(shard, &event, at, pending, env)
    }

    /// Stores the flush with one statement.
    fn store(&mut self, mut in_flight: FlushInFlight, env: &mut Env) {
        let pending = &in_flight.pending;
        let mark = |(shard, new): (&ShardId, &Position)| {
            let held = self.shards.get(shard)?;
            let moved = *new > held.watermark;
            moved.then_some(Mark {
                shard: *shard,
                epoch: held.epoch,
                old: held.watermark,
                new: *new,
            })
        };
        let marks: Vec<Mark> = pending.marks.iter().filter_map(mark).collect();
        if marks.is_empty() {
            return self.succeeded(in_flight, env);
        }
        let changed = pending
            .changes
            .iter()
            .filter(|(_, changes)| !changes.writes_no_row());
        let row = |(run_id, changes): (&RunId, &Changes)| {
            let run = self.shards.get(&run_id.shard())?.runs.get(run_id)?;
            Some(RowWrite::of(
                run,
                changes,
                pending.new_runs.contains(run_id),
            ))
        };
        in_flight.number = env.number();
        let flush = Flush {
            by: env.holder(self.process_id()),
            number: in_flight.number,
            marks,
            events: pending.events.clone(),
            rows: changed.filter_map(row).collect(),
            at: in_flight.at,
            claims_only: pending.claims_only,
        };
        self.in_flight = Some(in_flight);
        env.store(Store::Fold(Box::new(flush)));
    }

    pub fn stored(&mut self, number: u64, result: Result<(), StoreError>, env: &mut Env) {
        let Some(in_flight) = self
            .in_flight
            .take_if(|in_flight| in_flight.number == number)
        else {
            return;
        };
        match result {
            Ok(()) => {
                for (shard, mark) in &in_flight.pending.marks {
                    if let Some(held) = self.shards.get_mut(shard) {
                        (held.watermark, held.recorded_at) =
                            (*mark, held.recorded_at.max(in_flight.at));
                    }
                }
                self.succeeded(in_flight, env);
            }
            Err(error) => self.failed(in_flight, error, env),
        }
    }

    fn succeeded(&mut self, in_flight: FlushInFlight, env: &mut Env) {
        self.publish(&in_flight.pending, env);
        match in_flight.job {
            Job::Submissions { submissions, .. } => {
                submissions
                    .into_iter()
                    .zip(in_flight.answers)
                    .for_each(|(submission, outcomes)| self.reply(submission.reply, outcomes, env));
            }
            // More events may have been appended.
            Job::CatchUp {
                shard,
                just_acquired,
            } => self.jobs.push_front(Job::CatchUp {
                shard,
                just_acquired,
            }),
        }
    }

    fn failed(&mut self, in_flight: FlushInFlight, error: StoreError, env: &mut Env) {
        env.note(format_args!(
            "scheduler {}: a flush failed, {error:?}",
            self.me
        ));
        let (submissions, since) = match in_flight.job {
            Job::CatchUp { shard, .. } => return self.reload_shard(shard, env),
            Job::Submissions { submissions, since } => (submissions, since),
        };
        let runs: Vec<RunId> = submissions
            .iter()
            .flat_map(|submission| submission.commands.iter().map(Command::run))
            .collect();
        let shards: BTreeSet<ShardId> = submissions
            .iter()
            .map(|submission| submission.shard)
            .collect();
        if error == StoreError::KeyTaken && submissions.len() > 1 {
            self.evict_runs(runs);
            let one_by_one = submissions
                .into_iter()
                .rev()
                .map(|submission| Job::Submissions {
                    submissions: vec![submission],
                    since,
                });
            return one_by_one.for_each(|job| self.jobs.push_front(job));
        }
        let hopeless = env.now.us_since(since) > RETRY_FOR || error == StoreError::KeyTaken;
        let mut again = None;
        if hopeless {
            submissions
                .into_iter()
                .for_each(|submission| self.refuse(submission, &CommandResult::Unavailable, env));
        } else {
            again = Some(Job::Submissions { submissions, since });
        }
        match error {
            StoreError::Behind | StoreError::ClockOff | StoreError::KeyTaken => {
                self.evict_runs(runs.iter().copied());
                // Loaded again at once, because a snapshot may be sent before they are accessed.
                if env.bug != Bug::RunForgotten && !env.database_is_down() {
                    self.load_missing(runs.into_iter(), env);
                }
                self.jobs
                    .extend(shards.into_iter().map(|shard| Job::CatchUp {
                        shard,
                        just_acquired: false,
                    }));
            }
            StoreError::LeaseLost | StoreError::Broken => {
                shards
                    .into_iter()
                    .for_each(|shard| self.reload_shard(shard, env));
            }
        }
        self.jobs.extend(again);
    }

    fn refuse(&mut self, submission: Submission, why: &CommandResult, env: &mut Env) {
        let outcomes = vec![why.clone(); submission.commands.len()];
        self.reply(submission.reply, outcomes, env);
    }

    /// Sends updates to the dispatchers, arms timers and evicts ended runs.
    fn publish(&mut self, pending: &PendingFlush, env: &mut Env) {
        for (run_id, changes) in &pending.changes {
            let Some(held) = self.shards.get_mut(&run_id.shard()) else {
                continue;
            };
            let (Some(run), Some(planned)) = (held.runs.get(run_id), env.planned_runs.get(run_id))
            else {
                continue;
            };
            self.streams
                .record(run, changes, planned, &env.ledger.starts);
            if let (true, Some(deadline)) = (pending.new_runs.contains(run_id), run.header.deadline)
            {
                self.timers.arm(deadline, *run_id, None);
            }
            for task_ref in &changes.due {
                let settings = planned.plan.settings(task_ref.ordinal);
                let due = run
                    .task_row(*task_ref)
                    .and_then(|task_row| due_of(task_row, settings, None));
                due.into_iter()
                    .for_each(|due| self.timers.arm(due.at, *run_id, Some(*task_ref)));
            }
            if run.ended_at.is_some() {
                held.runs.remove(run_id);
            }
        }
        self.streams.send_updates(env);
    }
}

/// The header with the time of its event, from which the deadline counts.
pub fn recorded_header(
    header: &RunHeader,
    shard: ShardId,
    position: Position,
    at: Timestamp,
) -> RunHeader {
    RunHeader {
        number: position.get() * i64::from(Stream::Execution.shard_count())
            + i64::from(shard.get()),
        created_at: at,
        deadline: (header.deadline)
            .map(|deadline| at.plus_us(deadline.us_since(header.created_at))),
        ..header.clone()
    }
}

/// Returns the event; with the bug, the result of any attempt counts for the active one.
fn guarded(event: &Event, run: &Run, bug: Bug) -> Event {
    match (bug, event) {
        (Bug::AttemptGuardOff, Event::TaskFinished(finished)) => {
            let mut finished = finished.clone();
            let active = run
                .task_row(finished.task)
                .filter(|task_row| task_row.state.has_attempt());
            if let Some(task_row) = active {
                finished.attempt_id = task_row.attempt_id.unwrap_or(finished.attempt_id);
                finished.session = task_row.session.unwrap_or(finished.session);
            }
            Event::TaskFinished(finished)
        }
        _ => event.clone(),
    }
}

/// The bug: an ended task is reset and ends again.
fn folded_again(run: &mut Run, event: &Event, at: Timestamp, changes: &mut Changes) -> bool {
    let (Event::TaskFinished(finished), Some(plan)) = (event, run.plan.clone()) else {
        return false;
    };
    let mut task_rows: Vec<(TaskRef, _)> = run
        .task_rows()
        .map(|(task_ref, task_row)| (task_ref, task_row.clone()))
        .collect();
    let items = (0..plan.tasks.len() as u32)
        .filter_map(|ordinal| Some((ordinal, run.items(ordinal)?.clone())));
    let items = items.collect();
    for (_, task_row) in task_rows
        .iter_mut()
        .filter(|(task_ref, _)| *task_ref == finished.task)
    {
        task_row.state = TaskState::Running;
    }
    let mut back = Run::requested(run.header.clone()).restore(plan, task_rows, items);
    back.state = run.state;
    back.reason = run.reason;
    back.version = run.version;
    (back.changed_at, back.started_at, back.ended_at) =
        (run.changed_at, run.started_at, run.ended_at);
    back.stopped_by = run.stopped_by;
    back.error = run.error.clone();
    *run = back;
    fold(run, event, at, changes) == Verdict::Folded
}
