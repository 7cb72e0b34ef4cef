//! One flush of a scheduler: load, fold with the real core, store in one statement, answer; and what is done when it
//! did not get through.

use std::collections::{BTreeMap, BTreeSet};

use servo_model::RunId;
use servo_model::states::TaskState;
use servo_scheduler::core::{
    Changes, Event, Refusal, Run, RunHeader, Slot, Time, Verdict, due_of, fold,
};

use crate::SECOND;
use crate::bugs::Bug;
use crate::env::Env;
use crate::ledger::{Body, Flush, Key, Mark, NewEvent, Recorded, Store, StoreError};
use crate::plan::Plan;
use crate::rows::RowWrite;
use crate::scheduler::{Ask, Busy, Claim, Done, Job, Scheduler, Work};

/// How long a flush is repeated before its callers are told that it did not happen.
const PATIENCE: Time = 5 * SECOND;

#[derive(Debug, Default)]
pub struct Draft {
    changes: BTreeMap<RunId, Changes>,
    born: BTreeSet<RunId>,
    events: Vec<NewEvent>,
    marks: BTreeMap<i16, i64>,
    claims_only: bool,
}

impl Scheduler {
    pub fn begin(&mut self, job: Job, env: &mut Env) {
        match job {
            Job::Works { works, since } => self.begin_works(works, since, env),
            Job::Tail { shard, taken } => self.begin_tail(shard, taken, env),
        }
    }

    fn begin_works(&mut self, works: Vec<Work>, since: Time, env: &mut Env) {
        let (works, foreign): (Vec<_>, Vec<_>) = works
            .into_iter()
            .partition(|work| self.shards.contains_key(&work.shard));
        foreign
            .into_iter()
            .for_each(|work| self.refuse(work, &Done::NotHeld, env));
        if works.is_empty() {
            return;
        }
        let mut draft = Draft {
            claims_only: true,
            ..Draft::default()
        };
        if env.database_is_down() {
            let job = Job::Works { works, since };
            return self.failed(
                Busy {
                    number: 0,
                    job,
                    draft,
                    answers: Vec::new(),
                    at: env.now,
                },
                StoreError::Broken,
                env,
            );
        }
        self.load_missing(
            works.iter().flat_map(|work| work.asks.iter().map(Ask::run)),
            env,
        );
        let recorded = works
            .iter()
            .filter_map(|work| Some(self.shards.get(&work.shard)?.recorded_at))
            .max();
        let at = env.now.max(recorded.unwrap_or(0));
        let mut answers = Vec::with_capacity(works.len());
        for work in &works {
            answers.push(
                work.asks
                    .iter()
                    .map(|ask| self.fold_ask(work.shard, ask, at, &mut draft, env))
                    .collect(),
            );
        }
        self.store(
            Busy {
                number: 0,
                job: Job::Works { works, since },
                draft,
                answers,
                at,
            },
            env,
        );
    }

    fn begin_tail(&mut self, shard: i16, taken: bool, env: &mut Env) {
        let Some(held) = self.shards.get(&shard) else {
            return;
        };
        if env.database_is_down() {
            return self.forget_shard(shard, env);
        }
        let after = held.watermark as usize;
        let recorded_at = held.recorded_at;
        let events: Vec<Recorded> = env.ledger.shards[shard as usize]
            .events
            .iter()
            .skip(after)
            .cloned()
            .collect();
        if events.is_empty() {
            if taken {
                self.tell_all(shard, env);
            }
            return;
        }
        self.load_missing(events.iter().map(|event| event.event.run), env);
        let mut draft = Draft::default();
        for (position, event) in (after as i64 + 1..).zip(&events) {
            draft.marks.insert(shard, position);
            if env.bug == Bug::EventSkipped && position % 3 == 0 {
                continue;
            }
            self.fold_foreign(shard, position, event, &mut draft, env);
        }
        let at = env.now.max(recorded_at);
        self.store(
            Busy {
                number: 0,
                job: Job::Tail { shard, taken },
                draft,
                answers: Vec::new(),
                at,
            },
            env,
        );
    }

    fn fold_foreign(
        &mut self,
        shard: i16,
        position: i64,
        recorded: &Recorded,
        draft: &mut Draft,
        env: &mut Env,
    ) {
        let Some(held) = self.shards.get_mut(&shard) else {
            return;
        };
        let run_id = recorded.event.run;
        env.note(format_args!(
            "scheduler {} tails {shard}/{position} {:?}",
            self.me, recorded.event.key
        ));
        match (&recorded.event.body, held.runs.get_mut(&run_id)) {
            (Body::Requested(_), Some(_)) | (Body::Core(_), None) => {}
            (Body::Requested(header), None) => {
                held.runs.insert(
                    run_id,
                    Run::requested(born(header, shard, position, recorded.at)),
                );
                draft.born.insert(run_id);
                draft.changes.insert(
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
                    draft.changes.entry(run_id).or_default(),
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
        self.keep_runs(loaded);
    }

    fn fold_ask(
        &mut self,
        shard: i16,
        ask: &Ask,
        at: Time,
        draft: &mut Draft,
        env: &mut Env,
    ) -> Done {
        match ask {
            Ask::Run(plan) => self.fold_new_run(shard, plan, at, draft, env),
            Ask::Event(event) => self.fold_event(shard, event, at, draft, env),
            Ask::Claim(claim) => self.fold_claim(shard, claim, at, draft, env),
        }
    }

    fn fold_new_run(
        &mut self,
        shard: i16,
        plan: &Plan,
        at: Time,
        draft: &mut Draft,
        env: &mut Env,
    ) -> Done {
        let Some(held) = self.shards.get_mut(&shard) else {
            return Done::NotHeld;
        };
        let mark = *draft.marks.entry(shard).or_insert(held.watermark);
        let run_id = plan.run_id();
        if let Some(run) = held.runs.get(&run_id) {
            let same =
                run.header.fingerprint == plan.header.fingerprint || env.bug == Bug::KeyNotCompared;
            return if same {
                Done::Exists
            } else {
                self.fold_rival(shard, plan, draft, env)
            };
        }
        let mut run = Run::requested(born(&plan.header, shard, mark + 1, at));
        let mut changes = Changes {
            run: true,
            ..Changes::default()
        };
        let planned = Event::PlanCreated {
            graph: plan.graph.clone(),
        };
        fold(&mut run, &planned, at, &mut changes);
        let mut event = |key, body| NewEvent {
            id: env.number(),
            shard,
            run: run_id,
            key,
            body,
            admission_epoch: 0,
            judged_at: 0,
        };
        let request = event(Key::Requested(run_id), Body::Requested(plan.header.clone()));
        let created = event(Key::Planned(run_id), Body::Core(planned));
        draft.events.extend([request, created]);
        draft.marks.insert(shard, mark + 2);
        draft.claims_only = false;
        draft.born.insert(run_id);
        draft.changes.insert(run_id, changes);
        held.runs.insert(run_id, run);
        Done::Core(Verdict::Folded)
    }

    /// Another request under the key of a run that exists is put on record, once, and starts nothing.
    fn fold_rival(&mut self, shard: i16, plan: &Plan, draft: &mut Draft, env: &mut Env) -> Done {
        let (run, key) = (plan.run_id(), Key::Rival(plan.run_id()));
        if env.ledger.has(&key) || draft.events.iter().any(|event| event.key == key) {
            return Done::Conflict;
        }
        let body = Body::Requested(plan.header.clone());
        draft.events.push(NewEvent {
            id: env.number(),
            shard,
            run,
            key,
            body,
            admission_epoch: 0,
            judged_at: 0,
        });
        *draft.marks.entry(shard).or_default() += 1;
        draft.claims_only = false;
        draft.changes.entry(run).or_default();
        Done::Conflict
    }

    fn fold_event(
        &mut self,
        shard: i16,
        event: &NewEvent,
        at: Time,
        draft: &mut Draft,
        env: &mut Env,
    ) -> Done {
        let Some(held) = self.shards.get_mut(&shard) else {
            return Done::NotHeld;
        };
        let mark = *draft.marks.entry(shard).or_insert(held.watermark);
        let Some(run) = held.runs.get_mut(&event.run) else {
            return Done::RunUnknown;
        };
        let Body::Core(happened) = &event.body else {
            return Done::RunUnknown;
        };
        if env.bug == Bug::LostCancel && matches!(happened, Event::CancelRequested { .. }) {
            return Done::Core(Verdict::Folded);
        }
        let changes = draft.changes.entry(event.run).or_default();
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
            return Done::Core(verdict);
        }
        if let (Bug::SlotFreedTwice, Event::Started { attempt_id, .. }) = (env.bug, happened) {
            changes.ended.push((*attempt_id, 0));
        }
        draft.claims_only &= matches!(happened, Event::Claimed { .. });
        draft.events.push(event.clone());
        draft.marks.insert(shard, mark + 1);
        Done::Core(verdict)
    }

    fn fold_claim(
        &mut self,
        shard: i16,
        claim: &Claim,
        at: Time,
        draft: &mut Draft,
        env: &mut Env,
    ) -> Done {
        let Some(plan) = env.plans.get(&claim.run).cloned() else {
            return Done::RunUnknown;
        };
        if !self.gates.admits(
            claim.source,
            plan.header.tenant.admission_shard(),
            claim.epoch,
            env.bug,
        ) {
            env.stats.stale_claims += 1;
            return Done::StaleAdmission;
        }
        let run = self
            .shards
            .get(&shard)
            .and_then(|held| held.runs.get(&claim.run));
        let ready = run
            .and_then(|run| run.cell(claim.task))
            .filter(|cell| cell.state == TaskState::Ready);
        if ready.is_some_and(|cell| cell.next_attempt(&env.ledger.starts) != claim.attempt) {
            return Done::Core(Verdict::Refused(Refusal::NotReady(claim.attempt)));
        }
        let attempt_id = plan.attempt_id(claim.task, claim.attempt);
        let claimed = Event::Claimed {
            task: claim.task,
            attempt: claim.attempt,
            attempt_id,
            worker: Some(*claim.worker.as_bytes()),
            pushed: plan.is_pushed(claim.task),
            ack_us: plan.graph.settings(claim.task.ordinal).dispatch_ack_us,
        };
        let event = NewEvent {
            id: env.number(),
            shard,
            run: claim.run,
            key: Key::Dispatch(attempt_id),
            body: Body::Core(claimed),
            admission_epoch: claim.epoch,
            judged_at: 0,
        };
        self.fold_event(shard, &event, at, draft, env)
    }

    /// One statement for all of it.
    fn store(&mut self, mut busy: Busy, env: &mut Env) {
        let draft = &busy.draft;
        let mark = |(shard, new): (&i16, &i64)| {
            let held = self.shards.get(shard)?;
            let moved = *new > held.watermark;
            moved.then_some(Mark {
                shard: *shard,
                epoch: held.epoch,
                old: held.watermark,
                new: *new,
            })
        };
        let marks: Vec<Mark> = draft.marks.iter().filter_map(mark).collect();
        if marks.is_empty() {
            return self.succeeded(busy, env);
        }
        let changed = draft
            .changes
            .iter()
            .filter(|(_, changes)| !changes.is_empty());
        let row = |(run_id, changes): (&RunId, &Changes)| {
            let run = self.shards.get(&run_id.shard())?.runs.get(run_id)?;
            Some(RowWrite::of(run, changes, draft.born.contains(run_id)))
        };
        busy.number = env.number();
        let flush = Flush {
            by: env.holder(self.place()),
            number: busy.number,
            marks,
            events: draft.events.clone(),
            rows: changed.filter_map(row).collect(),
            at: busy.at,
            claims_only: draft.claims_only,
        };
        self.busy = Some(busy);
        env.store(Store::Fold(Box::new(flush)));
    }

    pub fn stored(&mut self, number: u64, result: Result<(), StoreError>, env: &mut Env) {
        let Some(busy) = self.busy.take_if(|busy| busy.number == number) else {
            return;
        };
        match result {
            Ok(()) => {
                for (shard, mark) in &busy.draft.marks {
                    if let Some(held) = self.shards.get_mut(shard) {
                        (held.watermark, held.recorded_at) = (*mark, held.recorded_at.max(busy.at));
                    }
                }
                self.succeeded(busy, env);
            }
            Err(error) => self.failed(busy, error, env),
        }
    }

    fn succeeded(&mut self, busy: Busy, env: &mut Env) {
        self.publish(&busy.draft, env);
        match busy.job {
            Job::Works { works, .. } => {
                works
                    .into_iter()
                    .zip(busy.answers)
                    .for_each(|(work, done)| self.reply(work.reply, done, env));
            }
            // There may be more by now.
            Job::Tail { shard, taken } => self.jobs.push_front(Job::Tail { shard, taken }),
        }
    }

    fn failed(&mut self, busy: Busy, error: StoreError, env: &mut Env) {
        env.note(format_args!(
            "scheduler {}: a flush failed, {error:?}",
            self.me
        ));
        let (works, since) = match busy.job {
            Job::Tail { shard, .. } => return self.retake(shard, env),
            Job::Works { works, since } => (works, since),
        };
        let runs: Vec<RunId> = works
            .iter()
            .flat_map(|work| work.asks.iter().map(Ask::run))
            .collect();
        let shards: BTreeSet<i16> = works.iter().map(|work| work.shard).collect();
        if error == StoreError::KeyTaken && works.len() > 1 {
            self.forget_runs(runs);
            let one_by_one = works.into_iter().rev().map(|work| Job::Works {
                works: vec![work],
                since,
            });
            return one_by_one.for_each(|job| self.jobs.push_front(job));
        }
        let hopeless = env.now - since > PATIENCE || error == StoreError::KeyTaken;
        let mut again = None;
        match hopeless {
            true => works
                .into_iter()
                .for_each(|work| self.refuse(work, &Done::Unavailable, env)),
            false => again = Some(Job::Works { works, since }),
        }
        match error {
            StoreError::Behind | StoreError::ClockOff | StoreError::KeyTaken => {
                self.forget_runs(runs.iter().copied());
                // Read again at once: a snapshot may be told before they are asked for.
                if env.bug != Bug::RunForgotten && !env.database_is_down() {
                    self.load_missing(runs.into_iter(), env);
                }
                self.jobs.extend(shards.into_iter().map(|shard| Job::Tail {
                    shard,
                    taken: false,
                }));
            }
            StoreError::LeaseLost | StoreError::Broken => {
                shards.into_iter().for_each(|shard| self.retake(shard, env));
            }
        }
        self.jobs.extend(again);
    }

    fn refuse(&mut self, work: Work, why: &Done, env: &mut Env) {
        let done = vec![why.clone(); work.asks.len()];
        self.reply(work.reply, done, env);
    }

    /// Tells the dispatchers, arms timers, and forgets what has ended.
    fn publish(&mut self, draft: &Draft, env: &mut Env) {
        for (run_id, changes) in &draft.changes {
            let Some(held) = self.shards.get_mut(&run_id.shard()) else {
                continue;
            };
            let (Some(run), Some(plan)) = (held.runs.get(run_id), env.plans.get(run_id)) else {
                continue;
            };
            self.gates.tell(run, changes, plan, &env.ledger.starts);
            if let (true, Some(deadline)) = (draft.born.contains(run_id), run.header.deadline) {
                self.timers.arm(deadline, *run_id, None);
            }
            for slot in &changes.due {
                let settings = plan.graph.settings(slot.ordinal);
                let due = run
                    .cell(*slot)
                    .and_then(|cell| due_of(cell, settings, None));
                due.into_iter()
                    .for_each(|due| self.timers.arm(due.at, *run_id, Some(*slot)));
            }
            if run.ended_at.is_some() {
                held.runs.remove(run_id);
            }
        }
        self.gates.send(env);
    }
}

/// The header as it is recorded: the deadline counts from then.
pub fn born(header: &RunHeader, shard: i16, position: i64, at: Time) -> RunHeader {
    RunHeader {
        number: position * 64 + i64::from(shard),
        created_at: at,
        deadline: header.deadline.map(|duration| at + duration),
        ..header.clone()
    }
}

/// The event as it is; under the bug, any attempt's result is taken for that of the active one.
fn guarded(event: &Event, run: &Run, bug: Bug) -> Event {
    match (bug, event) {
        (Bug::AttemptGuardOff, Event::Finished(finished)) => {
            let mut finished = finished.clone();
            let active = run
                .cell(finished.task)
                .filter(|cell| cell.state.has_attempt());
            if let Some(cell) = active {
                finished.attempt_id = cell.attempt_id.unwrap_or(finished.attempt_id);
                finished.session = cell.session.unwrap_or(finished.session);
            }
            Event::Finished(finished)
        }
        _ => event.clone(),
    }
}

/// The bug: a task that has ended is set back and ends once more.
fn folded_again(run: &mut Run, event: &Event, at: Time, changes: &mut Changes) -> bool {
    let (Event::Finished(finished), Some(graph)) = (event, run.graph.clone()) else {
        return false;
    };
    let mut cells: Vec<(Slot, _)> = run
        .cells()
        .map(|(slot, cell)| (slot, cell.clone()))
        .collect();
    let items = (0..graph.tasks.len() as u32)
        .filter_map(|ordinal| Some((ordinal, run.items(ordinal)?.clone())));
    let items = items.collect();
    for (_, cell) in cells.iter_mut().filter(|(slot, _)| *slot == finished.task) {
        cell.state = TaskState::Running;
    }
    let mut back = Run::requested(run.header.clone()).restore(graph, cells, items);
    (back.state, back.reason, back.version) = (run.state, run.reason, run.version);
    (back.changed_at, back.started_at, back.ended_at) =
        (run.changed_at, run.started_at, run.ended_at);
    (back.stopped_by, back.error) = (run.stopped_by, run.error.clone());
    *run = back;
    fold(run, event, at, changes) == Verdict::Folded
}
