//! A callback instance: forwards reports to the shard's holder, appends them when no holder
//! answers, and stores heartbeats.

use std::collections::BTreeMap;

use servo_model::{AttemptId, RunId, TaskRef, Timestamp};
use servo_scheduler::core::Verdict;

use crate::MS;
use crate::env::{Env, Message, ProcessId};
use crate::faults::Fault;
use crate::ledger::{Appended, Key, NewEvent, Store};
use crate::scheduler::{self, Command, CommandResult, Reply, Submission, ToScheduler};
use crate::worker::ToWorker;

/// How long a holder may take to answer.
const CALL_TIMEOUT: i64 = 2_000 * MS;
/// A report without a verdict is appended when this time has passed since it arrived.
const RECORD_AFTER: i64 = 100 * MS;
const RETRY_DELAY: i64 = 20 * MS;

#[derive(Debug, Clone)]
pub enum ToCallback {
    Report(Report),
    Beat(Beat),
    Verdict(u64, CommandResult),
    /// The holder did not answer in time.
    Late(u64),
    /// Search for a holder again.
    Again(u64),
    Appended(u64, Result<Appended, ()>),
}

/// A start or an outcome, as a worker process reports it.
#[derive(Debug, Clone)]
pub struct Report {
    pub event: NewEvent,
    pub from: Caller,
}

/// The worker process that waits for the answer, and its call.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    pub worker: usize,
    pub life: u32,
    pub call: u64,
}

#[derive(Debug, Clone)]
pub struct Beat {
    pub run: RunId,
    pub task: TaskRef,
    pub attempt: AttemptId,
    pub from: Caller,
}

/// The answer to a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    Folded,
    Duplicate,
    Late,
    Recorded,
    Refused,
    /// The worker must report again.
    NotReady,
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeatReply {
    GoOn,
    Stop,
    Stale,
}

pub struct Callback {
    me: usize,
    calls: BTreeMap<u64, (Report, Timestamp)>,
}

impl Callback {
    pub fn new(me: usize) -> Callback {
        Callback {
            me,
            calls: BTreeMap::new(),
        }
    }

    fn process_id(&self) -> ProcessId {
        ProcessId::Callback(self.me)
    }

    pub fn take(&mut self, message: ToCallback, env: &mut Env) {
        match message {
            ToCallback::Report(report) => {
                let call = env.number();
                self.calls.insert(call, (report, env.now));
                self.forward(call, env);
            }
            ToCallback::Beat(beat) => self.beat(&beat, env),
            ToCallback::Verdict(call, outcome) => self.verdict(call, &outcome, env),
            ToCallback::Late(call) => self.without_holder(call, env),
            ToCallback::Again(call) => self.forward(call, env),
            ToCallback::Appended(call, appended) => self.appended(call, appended, env),
        }
    }

    fn forward(&mut self, call: u64, env: &mut Env) {
        let Some((report, _)) = self.calls.get(&call) else {
            return;
        };
        let event = report.event.clone();
        match scheduler::holder_of(event.shard, env) {
            Some(holder) if !env.database_is_down() => {
                let reply = Reply::Callback {
                    callback: self.me,
                    life: env.life(self.process_id()),
                    call,
                };
                let submission = Submission {
                    shard: event.shard,
                    commands: vec![Command::Event(event)],
                    reply,
                };
                env.call(Message::Scheduler(
                    holder,
                    ToScheduler::Submission(submission),
                ));
                env.later(
                    CALL_TIMEOUT,
                    self.process_id(),
                    Message::Callback(self.me, ToCallback::Late(call)),
                );
            }
            _ => self.without_holder(call, env),
        }
    }

    fn verdict(&mut self, call: u64, result: &CommandResult, env: &mut Env) {
        let acceptance = match result {
            CommandResult::Fold(Verdict::Folded) => Acceptance::Folded,
            CommandResult::Fold(Verdict::Duplicate) => Acceptance::Duplicate,
            CommandResult::Fold(Verdict::Late) => Acceptance::Late,
            CommandResult::NotHeld | CommandResult::Unavailable => {
                return self.without_holder(call, env);
            }
            _ => Acceptance::Refused,
        };
        self.answer(call, acceptance, env);
    }

    /// Searches for a holder for a short time, then appends the report.
    fn without_holder(&mut self, call: u64, env: &mut Env) {
        let Some((report, since)) = self.calls.get(&call) else {
            return;
        };
        if env.now.us_since(*since) < RECORD_AFTER {
            return env.later(
                RETRY_DELAY,
                self.process_id(),
                Message::Callback(self.me, ToCallback::Again(call)),
            );
        }
        let event = Box::new(report.event.clone());
        if env.database_is_down() {
            return self.answer(call, Acceptance::NotReady, env);
        }
        let late = env.faults_on && env.dice.percent(25);
        if late {
            env.stats.fault(Fault::LateCommit);
        }
        let commit_after = if late {
            env.dice.between(20, 1_200) * MS
        } else {
            0
        };
        env.store(Store::Append {
            by: env.holder(self.process_id()),
            call,
            event,
            commit_after,
        });
    }

    fn appended(&mut self, call: u64, appended: Result<Appended, ()>, env: &mut Env) {
        let start = self
            .calls
            .get(&call)
            .is_some_and(|(report, _)| matches!(report.event.key, Key::Started(_)));
        let acceptance = match appended {
            Ok(Appended::New) => Acceptance::Recorded,
            // The callback does not know whether it was folded.
            Ok(Appended::Duplicate) if start => Acceptance::Recorded,
            Ok(Appended::Duplicate) => Acceptance::Duplicate,
            Ok(Appended::Conflict) => Acceptance::Refused,
            Err(()) => Acceptance::NotReady,
        };
        self.answer(call, acceptance, env);
    }

    fn answer(&mut self, call: u64, acceptance: Acceptance, env: &mut Env) {
        let Some((report, _)) = self.calls.remove(&call) else {
            return;
        };
        if matches!(
            acceptance,
            Acceptance::Folded | Acceptance::Late | Acceptance::Recorded
        ) {
            env.promised.push((report.event.key, "a worker"));
        }
        let Caller { worker, life, call } = report.from;
        env.answer(
            life,
            Message::Worker(worker, ToWorker::Answer(call, acceptance)),
        );
    }

    /// Stores a heartbeat and answers from the rows whether the attempt should continue.
    fn beat(&mut self, beat: &Beat, env: &mut Env) {
        if env.database_is_down() {
            return;
        }
        let now = env.now;
        env.beats.entry(beat.attempt).or_default().push(now);
        let task_row = env
            .ledger
            .rows
            .get(&beat.run)
            .and_then(|row| row.task_rows.get(&beat.task));
        let active = task_row.filter(|task_row| {
            task_row.state.has_attempt() && task_row.attempt_id == Some(beat.attempt)
        });
        let beat_reply = match active {
            Some(task_row) if task_row.cancelling => BeatReply::Stop,
            Some(_) => BeatReply::GoOn,
            None => BeatReply::Stale,
        };
        let Caller { worker, life, .. } = beat.from;
        env.answer(
            life,
            Message::Worker(worker, ToWorker::BeatReply(beat.attempt, beat_reply)),
        );
    }
}
