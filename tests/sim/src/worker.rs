//! Workers: they execute attempts, and some fail, crash, lie, report twice, go silent or report
//! late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_dispatcher::core::{Resources, Worker as Registered};
use servo_model::retry::ErrorCategory;
use servo_model::{AttemptId, Epoch, RunId, TaskRef, TenantScope, Timestamp, WorkerId};
use servo_scheduler::core::{Event, Finished, Outcome, Output};

use crate::callback::{Acceptance, Beat, BeatReply, Caller, Report, ToCallback};
use crate::dispatcher::{Connect, ToDispatcher};
use crate::env::{Env, Message, ProcessId};
use crate::faults::Fault;
use crate::ledger::{Body, Key, NewEvent};
use crate::{BEAT, MS};

/// After this long without an answer a report is sent again, elsewhere.
const RESEND_AFTER: i64 = 900 * MS;

#[derive(Debug, Clone)]
pub enum ToWorker {
    Connect,
    Disconnected(u64),
    Envelope(Envelope),
    Cancel(AttemptId),
    Answer(u64, Acceptance),
    BeatReply(AttemptId, BeatReply),
    Beat(AttemptId),
    Finish(AttemptId),
    Resend(u64),
}

#[derive(Debug, Clone)]
pub struct Envelope {
    pub run: RunId,
    pub task: TaskRef,
    pub attempt_id: AttemptId,
    pub attempt: u32,
    pub pushed: bool,
}

/// The planned course of an attempt.
#[derive(Debug, Clone)]
struct AttemptScript {
    lasts: i64,
    outcome: Outcome,
    silent: bool,
    twice: bool,
    lies: bool,
    stubborn: bool,
}

#[derive(Debug)]
struct Attempt {
    envelope: Envelope,
    script: AttemptScript,
    begun: bool,
    reported: bool,
}

pub struct Worker {
    me: usize,
    pub id: WorkerId,
    tenant: TenantScope,
    slots: u32,
    session: u64,
    wire: Option<u64>,
    attempts: BTreeMap<AttemptId, Attempt>,
    /// All received attempts; a duplicate envelope is ignored.
    seen: BTreeSet<AttemptId>,
    /// Unanswered reports.
    calls: BTreeMap<u64, NewEvent>,
}

impl Worker {
    pub fn new(me: usize, tenant: TenantScope, slots: u32, session: u64) -> Worker {
        let id = WorkerId::from_bytes([me as u8 + 1; 16]);
        Worker {
            me,
            id,
            tenant,
            slots,
            session,
            wire: None,
            attempts: BTreeMap::new(),
            seen: BTreeSet::new(),
            calls: BTreeMap::new(),
        }
    }

    /// A new process on the same machine, without memory.
    pub fn restarted(&self, session: u64) -> Worker {
        Worker::new(self.me, self.tenant.clone(), self.slots, session)
    }

    fn process_id(&self) -> ProcessId {
        ProcessId::Worker(self.me)
    }

    fn to_self(&self, delay: i64, message: ToWorker, env: &mut Env) {
        env.later(delay, self.process_id(), Message::Worker(self.me, message));
    }

    pub fn take(&mut self, message: ToWorker, env: &mut Env) {
        match message {
            ToWorker::Connect => self.connect(env),
            ToWorker::Disconnected(wire) => {
                if self.wire == Some(wire) {
                    self.wire = None;
                    let delay = env.dice.between(5, 200) * MS;
                    self.to_self(delay, ToWorker::Connect, env);
                }
            }
            ToWorker::Envelope(envelope) => self.accept(envelope, env),
            ToWorker::Cancel(attempt) => self.cancel(attempt, env),
            ToWorker::BeatReply(attempt, beat_reply) => match beat_reply {
                BeatReply::GoOn => {}
                BeatReply::Stop => self.cancel(attempt, env),
                BeatReply::Stale => self.drop_attempt(attempt, env),
            },
            ToWorker::Beat(attempt) => self.beat(attempt, env),
            ToWorker::Finish(attempt) => self.finish(attempt, env),
            ToWorker::Answer(call, acceptance) => self.answered(call, acceptance, env),
            ToWorker::Resend(call) => self.send(call, env),
        }
    }

    /// Connects to the holder of the tenant's admission shard.
    fn connect(&mut self, env: &mut Env) {
        if self.wire.is_some() {
            return;
        }
        let shard = match self.tenant.tenant() {
            Some(tenant) => tenant.admission_shard().index(),
            None => env.dice.between(0, 15) as usize,
        };
        let row = env.ledger.admission[shard].clone();
        let holder = row
            .holder
            .filter(|_| row.lease_until > env.now && !env.database_is_down());
        let Some((dispatcher, _)) =
            holder.filter(|(index, _)| !env.processes[&ProcessId::Dispatcher(*index)].down)
        else {
            return self.to_self(200 * MS, ToWorker::Connect, env);
        };
        let wire = env.open_wire(ProcessId::Dispatcher(dispatcher), self.process_id());
        self.wire = Some(wire);
        let has: BTreeSet<AttemptId> = self.attempts.keys().copied().collect();
        let worker = Registered {
            id: self.id,
            session: self.session.to_string().into(),
            tenant: self.tenant.clone(),
            workspaces: BTreeSet::new(),
            pools: BTreeSet::new(),
            capabilities: BTreeSet::new(),
            handlers: BTreeSet::new(),
            resources: Resources::default(),
            slots: self.slots,
            credits: self.slots.saturating_sub(has.len() as u32),
            draining: false,
            pushed: false,
        };
        let connect = Connect {
            worker,
            index: self.me,
            wire,
            has,
        };
        env.on_wire(
            wire,
            0,
            0,
            Message::Dispatcher(dispatcher, ToDispatcher::Connect(Box::new(connect))),
        );
    }

    fn accept(&mut self, envelope: Envelope, env: &mut Env) {
        let id = envelope.attempt_id;
        if !self.seen.insert(id) {
            return;
        }
        let script = script(&envelope, env);
        let pushed = envelope.pushed;
        env.note(format_args!(
            "worker {} got {id}, will be {:?}",
            self.me, script.outcome
        ));
        let start = self.started(&envelope, env);
        self.attempts.insert(
            id,
            Attempt {
                envelope,
                script,
                begun: false,
                reported: false,
            },
        );
        if !pushed {
            self.begin(id, env);
        }
        self.report(start, env);
    }

    fn begin(&mut self, id: AttemptId, env: &mut Env) {
        let Some(attempt) = self.attempts.get_mut(&id).filter(|attempt| !attempt.begun) else {
            return;
        };
        attempt.begun = true;
        env.begun
            .entry(id)
            .or_default()
            .push((self.session, attempt.envelope.pushed));
        let (lasts, silent) = (attempt.script.lasts, attempt.script.silent);
        self.to_self(lasts, ToWorker::Finish(id), env);
        if !silent {
            self.to_self(BEAT, ToWorker::Beat(id), env);
        }
    }

    fn beat(&mut self, id: AttemptId, env: &mut Env) {
        let Some(attempt) = self.attempts.get(&id).filter(|attempt| !attempt.reported) else {
            return;
        };
        let Envelope { run, task, .. } = attempt.envelope;
        let from = Caller {
            worker: self.me,
            life: env.life(self.process_id()),
            call: 0,
        };
        let callback = env.dice.below(2) as usize;
        env.call(Message::Callback(
            callback,
            ToCallback::Beat(Beat {
                run,
                task,
                attempt: id,
                from,
            }),
        ));
        self.to_self(BEAT, ToWorker::Beat(id), env);
    }

    fn cancel(&mut self, id: AttemptId, env: &mut Env) {
        let Some(attempt) = self
            .attempts
            .get_mut(&id)
            .filter(|attempt| !attempt.reported)
        else {
            return;
        };
        if !attempt.script.stubborn {
            attempt.script.outcome = Outcome::Cancelled;
            self.finish(id, env);
        }
    }

    fn finish(&mut self, id: AttemptId, env: &mut Env) {
        let Some(attempt) = self
            .attempts
            .get_mut(&id)
            .filter(|attempt| !attempt.reported)
        else {
            return;
        };
        attempt.reported = true;
        let (envelope, script) = (attempt.envelope.clone(), attempt.script.clone());
        let report_event = self.finished(&envelope, script.outcome.clone(), self.session, env);
        if script.lies {
            self.lie(&envelope, env);
        }
        if script.twice {
            env.stats.fault(Fault::WorkerReportsTwice);
            self.report(report_event.clone(), env);
        }
        self.report(report_event, env);
    }

    /// Reports another outcome, another session, or an attempt that does not exist.
    fn lie(&mut self, envelope: &Envelope, env: &mut Env) {
        env.stats.fault(Fault::WorkerLies);
        let mut envelope = envelope.clone();
        let mut session = self.session;
        match env.dice.below(3) {
            0 => {}
            1 => session += 7_000,
            _ => {
                let next = env
                    .planned_runs
                    .get(&envelope.run)
                    .map(|planned| planned.attempt_id(envelope.task, envelope.attempt + 1));
                envelope.attempt_id = next.unwrap_or(envelope.attempt_id);
            }
        }
        let lie = self.finished(&envelope, Outcome::Skipped, session, env);
        self.report(lie, env);
    }

    fn started(&self, envelope: &Envelope, env: &mut Env) -> NewEvent {
        let attempt_id = envelope.attempt_id;
        let worker = Some(*self.id.as_bytes());
        let started = Event::TaskStarted {
            task: envelope.task,
            attempt_id,
            worker,
            session: self.session,
        };
        event(envelope, Key::Started(attempt_id), started, env)
    }

    fn finished(
        &self,
        envelope: &Envelope,
        outcome: Outcome,
        session: u64,
        env: &mut Env,
    ) -> NewEvent {
        let names_items = outcome == Outcome::Succeeded
            && envelope.task.map_index.is_none()
            && env
                .planned_runs
                .get(&envelope.run)
                .is_some_and(|planned| planned.is_mapped_over(envelope.task.ordinal));
        let items = names_items.then(|| (env.dice.below(4) as u32, Arc::from([0u8; 1])));
        let finished = Finished {
            task: envelope.task,
            attempt_id: envelope.attempt_id,
            worker: Some(*self.id.as_bytes()),
            session,
            started_at: None,
            outputs: outputs(envelope.task, &outcome),
            outcome,
            items,
            checks: Vec::new(),
            error: Vec::new(),
            message: "broken".to_owned(),
        };
        event(
            envelope,
            Key::Finished(envelope.attempt_id),
            Event::TaskFinished(Box::new(finished)),
            env,
        )
    }

    fn report(&mut self, event: NewEvent, env: &mut Env) {
        let call = env.number();
        self.calls.insert(call, event);
        self.send(call, env);
    }

    fn send(&mut self, call: u64, env: &mut Env) {
        let Some(event) = self.calls.get(&call).cloned() else {
            return;
        };
        let from = Caller {
            worker: self.me,
            life: env.life(self.process_id()),
            call,
        };
        let callback = env.dice.below(2) as usize;
        env.call(Message::Callback(
            callback,
            ToCallback::Report(Report { event, from }),
        ));
        self.to_self(RESEND_AFTER, ToWorker::Resend(call), env);
    }

    fn answered(&mut self, call: u64, acceptance: Acceptance, env: &mut Env) {
        let Some(event) = self.calls.get(&call) else {
            return;
        };
        let key = event.key;
        env.note(format_args!(
            "worker {}: {key:?} is {acceptance:?}",
            self.me
        ));
        match (key, acceptance) {
            (_, Acceptance::NotReady) => return,
            (Key::Started(attempt), Acceptance::Recorded)
                if self.attempts.get(&attempt).is_some_and(|a| !a.begun) =>
            {
                // A recorded start is not yet a permission.
                return;
            }
            (Key::Started(attempt), Acceptance::Refused) => self.drop_attempt(attempt, env),
            (Key::Started(attempt), _) => self.begin(attempt, env),
            (Key::Finished(attempt), _) => self.drop_attempt(attempt, env),
            _ => {}
        }
        self.calls.remove(&call);
    }

    /// Releases the slot.
    fn drop_attempt(&mut self, attempt: AttemptId, env: &mut Env) {
        if self.attempts.remove(&attempt).is_none() {
            return;
        }
        let Some(wire) = self.wire else { return };
        let Some(ProcessId::Dispatcher(dispatcher)) = env.wires.get(&wire).map(|wire| wire.ends[0])
        else {
            return;
        };
        env.on_wire(
            wire,
            0,
            0,
            Message::Dispatcher(dispatcher, ToDispatcher::Credits(wire, self.id, 1)),
        );
    }
}

/// The outputs of a successful attempt.
fn outputs(task: TaskRef, outcome: &Outcome) -> Vec<Output> {
    let made = Output {
        asset_key: format!("t/a{}", task.ordinal),
        partition_key: task
            .map_index
            .map_or_else(String::new, |item| format!("_map=i:{item}")),
        code_version: String::new(),
        output: Vec::new(),
    };
    let writes = matches!(outcome, Outcome::Succeeded | Outcome::Quarantined { .. });
    writes.then_some(made).into_iter().collect()
}

fn event(envelope: &Envelope, key: Key, body: Event, env: &mut Env) -> NewEvent {
    let (run, shard) = (envelope.run, envelope.run.shard());
    NewEvent {
        id: env.number(),
        shard,
        run,
        key,
        body: Body::Core(body),
        admission_epoch: Epoch::NEVER,
        judged_at: Timestamp::UNIX_EPOCH,
    }
}

fn script(envelope: &Envelope, env: &mut Env) -> AttemptScript {
    let faults_on = env.faults_on;
    let dice = &mut env.dice;
    let failed = |category| Outcome::Failed {
        category,
        error_type: String::new(),
        retriable: None,
    };
    let outcome = match dice.below(100) {
        0..=9 => failed(ErrorCategory::Transient),
        10..=12 => failed(ErrorCategory::UserCode),
        13 => failed(ErrorCategory::Timeout),
        14..=15 => Outcome::Skipped,
        16 => Outcome::CheckFailed,
        17 => Outcome::Quarantined {
            has_good_version: dice.percent(50),
        },
        18..=20 if faults_on => Outcome::Interrupted,
        _ => Outcome::Succeeded,
    };
    let silent = faults_on && dice.percent(5);
    let lasts = if silent || (faults_on && dice.percent(4)) {
        dice.between(2_500, 9_000) * MS
    } else {
        dice.between(10, 1_200) * MS
    };
    let (twice, lies) = (faults_on && dice.percent(5), faults_on && dice.percent(5));
    if silent {
        env.stats.fault(Fault::WorkerSilent);
    }
    let stubborn = (u64::from(envelope.attempt) + u64::from(envelope.task.ordinal)) % 4 == 0;
    AttemptScript {
        lasts,
        outcome,
        silent,
        twice,
        lies,
        stubborn,
    }
}
