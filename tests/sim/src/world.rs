//! One seed, from its first event to its checks.

use std::sync::Arc;

use servo_dispatcher::core::Limits;
use servo_model::states::Machine;
use servo_model::{ShardId, TenantId, TenantScope, Timestamp};

use crate::bugs::Bug;
use crate::callback::{Callback, ToCallback};
use crate::check;
use crate::dispatcher::{self, Dispatcher, ToDispatcher};
use crate::env::{Env, Message, Process, ProcessId};
use crate::faults::{self, FAULTS_UNTIL, Fault};
use crate::ledger::{Appended, Store, StoreError};
use crate::planned_run::PlannedRun;
use crate::scheduler::{self, Scheduler, ToScheduler};
use crate::stats::{Stats, TASKS_MIN};
use crate::user::{AUTOMATION, RunAction, ToUser, Users};
use crate::worker::{ToWorker, Worker};
use crate::{MS, SECOND};

/// All runs must have ended by this time.
const ENDED_BY: Timestamp = FAULTS_UNTIL.plus_us(150 * SECOND);
/// How long late messages are handled after the end of all runs.
const SETTLE: i64 = 4 * SECOND;
const WORKERS: usize = 5;

/// The result of a seed.
#[derive(Debug)]
pub struct Outcome {
    pub hash: u64,
    pub stats: Stats,
    /// The first invariant that did not hold.
    pub violation: Option<String>,
    pub trace: Vec<String>,
}

/// Runs a seed and records its trace on request.
pub fn run_seed(seed: u64, bug: Bug, record_trace: bool) -> Outcome {
    let mut world = World::new(seed, bug, record_trace);
    world.set_up();
    world.play();
    world.verify()
}

struct World {
    env: Env,
    tenants: Vec<TenantId>,
    limits: Limits,
    schedulers: Vec<Scheduler>,
    dispatchers: Vec<Dispatcher>,
    callbacks: Vec<Callback>,
    workers: Vec<Worker>,
    users: Users,
    unended: bool,
}

impl World {
    fn new(seed: u64, bug: Bug, record_trace: bool) -> World {
        let tenants: Vec<TenantId> = ["acme", "globex"]
            .map(|name| name.parse().expect("a name"))
            .into();
        let limits = dispatcher::limits(&tenants);
        let of = |index: usize| {
            let tenant = tenants.get(index / 2);
            tenant.map_or(TenantScope::All, TenantScope::from)
        };
        World {
            env: Env::new(seed, bug, record_trace),
            schedulers: (0..2).map(|me| Scheduler::new(me, bug)).collect(),
            dispatchers: (0..2).map(|me| Dispatcher::new(me, &limits)).collect(),
            callbacks: (0..2).map(Callback::new).collect(),
            workers: (0..WORKERS)
                .map(|me| Worker::new(me, of(me), 4, me as u64 + 1))
                .collect(),
            users: Users::default(),
            unended: false,
            tenants,
            limits,
        }
    }

    fn all_processes() -> impl Iterator<Item = ProcessId> {
        let services = (0..2).flat_map(|i| {
            [
                ProcessId::Scheduler(i),
                ProcessId::Dispatcher(i),
                ProcessId::Callback(i),
            ]
        });
        services.chain((0..WORKERS).map(ProcessId::Worker))
    }

    fn set_up(&mut self) {
        for process_id in World::all_processes() {
            self.env.processes.insert(
                process_id,
                Process {
                    life: 1,
                    down: false,
                    paused_until: Timestamp::UNIX_EPOCH,
                },
            );
            self.start(process_id);
        }
        let wanted = self.env.dice.between(3, 5).unsigned_abs();
        let (mut runs, mut tasks) = (0, 0);
        while runs < wanted || tasks < TASKS_MIN {
            let count = self.env.dice.between(10, 16) as u32;
            let planned =
                PlannedRun::random(runs as usize, count, &self.tenants, &mut self.env.dice);
            runs += 1;
            tasks += if planned.unplannable {
                0
            } else {
                u64::from(count)
            };
            let run = planned.run_id();
            self.env.planned_runs.insert(run, Arc::new(planned));
            let at = self.env.dice.between(10 * MS, 6 * SECOND);
            self.env.schedule(at, Message::User(ToUser::Trigger(run)));
            self.schedule_actions(run, at);
            if self.env.dice.percent(30) {
                let when = at + self.env.dice.between(5 * MS, 9 * SECOND);
                self.env
                    .schedule(when, Message::User(ToUser::Conflicting(run)));
            }
        }
        self.env.stats.runs = runs;
        self.env.stats.tasks = tasks;
        faults::schedule(&mut self.env);
    }

    fn schedule_actions(&mut self, run: servo_model::RunId, at: i64) {
        let action = |percent, action, env: &mut Env| {
            if env.dice.percent(percent) {
                let when = at + env.dice.between(5 * MS, 6 * SECOND);
                env.schedule(when, Message::User(ToUser::Control(run, action)));
            }
        };
        action(15, RunAction::Cancel, &mut self.env);
        action(6, RunAction::CancelBySystem, &mut self.env);
        action(25, RunAction::ForceCancel, &mut self.env);
        action(20, RunAction::Pause, &mut self.env);
        action(20, RunAction::Resume, &mut self.env);
    }

    /// Starts the loops of a process.
    fn start(&mut self, process_id: ProcessId) {
        let delay = self.env.dice.between(1, 50) * MS;
        let first = match process_id {
            ProcessId::Scheduler(index) => Message::Scheduler(index, ToScheduler::RenewLeases),
            ProcessId::Dispatcher(index) => Message::Dispatcher(index, ToDispatcher::Leases),
            ProcessId::Worker(index) => Message::Worker(index, ToWorker::Connect),
            ProcessId::Callback(_) => return,
        };
        self.env.later(delay, process_id, first);
    }

    fn play(&mut self) {
        let mut quiet = false;
        let mut ended_at = None;
        while let Some(message) = self.env.next_message() {
            self.env.stats.events += 1;
            self.deliver(message);
            if self.env.ledger.violation.is_some() {
                return;
            }
            if !quiet && self.env.now > FAULTS_UNTIL {
                quiet = true;
                self.stop_faults();
            }
            if quiet && ended_at.is_none() && self.all_ended() {
                ended_at = Some(self.env.now);
            }
            if ended_at.is_some_and(|at| self.env.now > at.plus_us(SETTLE)) {
                return;
            }
            if self.env.now > ENDED_BY {
                self.unended = true;
                return;
            }
        }
    }

    fn deliver(&mut self, message: Message) {
        let env = &mut self.env;
        match message {
            Message::Scheduler(index, message) => self.schedulers[index].take(message, env),
            Message::Dispatcher(index, message) => self.dispatchers[index].take(message, env),
            Message::Callback(index, message) => self.callbacks[index].take(message, env),
            Message::Worker(index, message) => self.workers[index].take(message, env),
            Message::User(message) => self.users.take(message, env),
            Message::Database(store) => database(store, env),
            Message::Commit(shard, generation, store) => commit(shard, generation, store, env),
            Message::Fault(fault) => self.inject(fault),
            Message::Revive(process_id) => self.revive(process_id),
        }
    }

    /// Injects a fault; one without an effect is tried again later.
    fn inject(&mut self, fault: Fault) {
        if self.apply_fault(fault) {
            self.env.stats.fault(fault);
        } else if self.env.faults_on {
            let later = self.env.dice.between(100, 600) * MS;
            self.env.schedule(later, Message::Fault(fault));
        }
    }

    /// Returns whether the fault had an effect.
    fn apply_fault(&mut self, fault: Fault) -> bool {
        let env = &mut self.env;
        match (fault, faults::victim(fault, WORKERS, env)) {
            (Fault::BreakAdmission, _) => faults::break_one(false, env),
            (Fault::BreakPull, _) => faults::break_one(true, env),
            (Fault::CrashPostgres, _) => crash(env),
            (_, Some(process_id))
                if matches!(
                    fault,
                    Fault::KillScheduler
                        | Fault::KillDispatcher
                        | Fault::KillCallback
                        | Fault::KillWorker
                ) =>
            {
                self.kill(process_id)
            }
            (_, Some(process_id)) => faults::pause(process_id, env),
            (_, None) => false,
        }
    }

    /// Kills a process, which loses its memory and restarts later.
    fn kill(&mut self, process_id: ProcessId) -> bool {
        let env = &mut self.env;
        let Some(process) = env
            .processes
            .get_mut(&process_id)
            .filter(|process| !process.down)
        else {
            return false;
        };
        process.down = true;
        process.paused_until = Timestamp::UNIX_EPOCH;
        process.life += 1;
        env.note(format_args!("{process_id:?} is killed"));
        env.break_wires_of(process_id);
        let back = env.dice.between(50, 4_000) * MS;
        env.schedule(back, Message::Revive(process_id));
        match process_id {
            ProcessId::Scheduler(index) => self.schedulers[index] = Scheduler::new(index, env.bug),
            ProcessId::Dispatcher(index) => {
                self.dispatchers[index] = Dispatcher::new(index, &self.limits)
            }
            ProcessId::Callback(index) => self.callbacks[index] = Callback::new(index),
            ProcessId::Worker(index) => {
                let session = env.number() + 1_000;
                self.workers[index] = self.workers[index].restarted(session);
            }
        }
        true
    }

    fn revive(&mut self, process_id: ProcessId) {
        let Some(process) = self
            .env
            .processes
            .get_mut(&process_id)
            .filter(|process| process.down)
        else {
            return;
        };
        process.down = false;
        self.env.note(format_args!("{process_id:?} is back"));
        self.start(process_id);
    }

    /// Ends the faults and restarts all processes. Paused processes resume on time, so that wires
    /// keep their order.
    fn stop_faults(&mut self) {
        self.env.note(format_args!("faults end"));
        self.env.faults_on = false;
        World::all_processes().for_each(|process_id| self.revive(process_id));
        let runs: Vec<_> = self.env.planned_runs.keys().copied().collect();
        for run in runs {
            for after in [1, 6, 12] {
                self.env.schedule(
                    after * SECOND,
                    Message::User(ToUser::Control(run, RunAction::Resume)),
                );
            }
        }
    }

    fn all_ended(&self) -> bool {
        let ended = |run| {
            self.env
                .ledger
                .rows
                .get(run)
                .is_some_and(|row| row.run.state.is_terminal())
        };
        self.users.accepted.len() == self.env.planned_runs.len()
            && self.users.accepted.iter().all(ended)
    }

    fn verify(mut self) -> Outcome {
        self.env.stats.lost_commits = self.env.ledger.lost_commits;
        let unended = self.unended.then(|| self.unended_runs());
        let found = self
            .env
            .ledger
            .violation
            .take()
            .or(unended)
            .or_else(|| check::all(&mut self.env, &self.limits));
        Outcome {
            hash: self.env.hash,
            stats: self.env.stats,
            violation: found,
            trace: self.env.trace.unwrap_or_default(),
        }
    }

    fn unended_runs(&self) -> String {
        let mut open = Vec::new();
        for run in self.env.planned_runs.keys() {
            let row = self.env.ledger.rows.get(run);
            let state = row.map(|row| row.run.state);
            if state.is_none_or(|state| !state.is_terminal()) {
                let waits = row.and_then(|row| {
                    row.task_rows
                        .iter()
                        .find(|(_, task_row)| !task_row.state.is_terminal())
                });
                let accepted = self.users.accepted.contains(run);
                open.push(format!("{run} ({state:?}, accepted {accepted}, {waits:?})"));
            }
        }
        format!("a run does not end (I3, 5): {}", open.join("; "))
    }
}

/// Executes a statement, or queues it behind a row lock.
fn database(store: Store, env: &mut Env) {
    if env.database_is_down() {
        return broken(store, env);
    }
    let wanted: Vec<ShardId> = match &store {
        Store::Fold(flush) => flush.marks.iter().map(|mark| mark.shard).collect(),
        Store::Append { event, .. } => vec![event.shard],
    };
    if let Some(shard) = wanted
        .into_iter()
        .find(|shard| env.ledger.shards[shard.index()].locked)
    {
        return env.ledger.shard(shard).waiting.push_back(store);
    }
    match store {
        Store::Fold(flush) => {
            let result = env.ledger.append_held(&flush, env.now);
            if result.is_ok() {
                flush
                    .events
                    .iter()
                    .for_each(|event| check::claim(event, env));
            }
            let claims = if flush.claims_only {
                ", claims only"
            } else {
                ""
            };
            env.note(format_args!(
                "flush {} of scheduler {:?}: {result:?}{claims}",
                flush.number, flush.by
            ));
            let lost = env.faults_on && env.dice.percent(2);
            if lost && result.is_ok() {
                env.stats.fault(Fault::UnknownCommit);
            }
            let answer = if lost {
                Err(StoreError::Broken)
            } else {
                result
            };
            stored(flush.by, flush.number, answer, env);
        }
        Store::Append {
            commit_after,
            ref event,
            ..
        } => {
            let shard = event.shard;
            let generation = env.ledger.generation;
            env.ledger.shard(shard).locked = true;
            // Commits are late only while faults are injected.
            match commit_after {
                later if later > 0 && env.faults_on => {
                    env.schedule(later, Message::Commit(shard, generation, store))
                }
                _ => commit(shard, generation, store, env),
            }
        }
    }
}

fn commit(shard: ShardId, generation: u32, store: Store, env: &mut Env) {
    if generation != env.ledger.generation {
        return broken(store, env);
    }
    let Store::Append {
        by, call, event, ..
    } = store
    else {
        return;
    };
    let appended = env.ledger.append(&event, env.now);
    env.note(format_args!("append {:?}: {appended:?}", event.key));
    let row = env.ledger.shard(shard);
    row.locked = false;
    let waiting: Vec<Store> = row.waiting.drain(..).collect();
    waiting
        .into_iter()
        .for_each(|store| env.schedule(1, Message::Database(store)));
    answer_append(by, call, Ok(appended), env);
    scheduler::notify_holder(shard, env);
}

fn stored(by: (usize, u32), number: u64, result: Result<(), StoreError>, env: &mut Env) {
    if env.life(ProcessId::Scheduler(by.0)) == by.1
        && !env.processes[&ProcessId::Scheduler(by.0)].down
    {
        let delay = env.dice.between(50, 500);
        env.later(
            delay,
            ProcessId::Scheduler(by.0),
            Message::Scheduler(by.0, ToScheduler::Stored(number, result)),
        );
    }
}

fn answer_append(by: (usize, u32), call: u64, appended: Result<Appended, ()>, env: &mut Env) {
    if by.0 == AUTOMATION {
        return env.schedule(MS, Message::User(ToUser::Appended(call, appended)));
    }
    if env.life(ProcessId::Callback(by.0)) == by.1 {
        let message = Message::Callback(by.0, ToCallback::Appended(call, appended));
        env.later(MS, ProcessId::Callback(by.0), message);
    }
}

fn broken(store: Store, env: &mut Env) {
    match store {
        Store::Fold(flush) => stored(flush.by, flush.number, Err(StoreError::Broken), env),
        Store::Append { by, call, .. } => answer_append(by, call, Err(()), env),
    }
}

fn crash(env: &mut Env) -> bool {
    if env.database_is_down() {
        return false;
    }
    let (lost, away) = (env.dice.below(8) as usize, env.dice.between(50, 800) * MS);
    env.note(format_args!("postgres crashes"));
    let back_at = env.now.plus_us(away);
    let waiting = env.ledger.crash(env.now, lost, back_at);
    waiting.into_iter().for_each(|store| broken(store, env));
    true
}
