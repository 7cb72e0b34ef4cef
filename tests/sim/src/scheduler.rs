//! A scheduler instance: its lane, the memory of its shards, and its lease keeper.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use servo_dispatcher::core::SchedulerStreamId;
use servo_model::{Epoch, Position, RunId, ShardId, Stream, TaskRef, Timestamp, WorkerId};
use servo_scheduler::core::{Run, Verdict};

use crate::bugs::Bug;
use crate::callback::ToCallback;
use crate::dispatcher::ToDispatcher;
use crate::dispatcher_streams::{self, DispatcherStream, DispatcherStreams};
use crate::env::{Env, Message, ProcessId};
use crate::faults::Fault;
use crate::flush::PendingFlush;
use crate::ledger::{Key, NewEvent, StoreError};
use crate::planned_run::PlannedRun;
use crate::timers::Timers;
use crate::user::ToUser;
use crate::{LEASE_TTL, MS, ROUND};

#[derive(Debug, Clone)]
pub enum ToScheduler {
    Submission(Submission),
    Open(DispatcherStream),
    Close(SchedulerStreamId),
    Claims(SchedulerStreamId, u64, Vec<ClaimRequest>),
    /// Another service may have appended to this shard.
    CatchUp(ShardId),
    /// The database answered a flush.
    Stored(u64, Result<(), StoreError>),
    RenewLeases,
    Wake,
}

/// A task that a dispatcher chose.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    pub run: RunId,
    pub task: TaskRef,
    pub attempt: u32,
    pub stream_id: SchedulerStreamId,
    pub epoch: Epoch,
    pub worker: WorkerId,
}

/// The commands of one caller for one shard.
#[derive(Debug, Clone)]
pub struct Submission {
    pub shard: ShardId,
    pub commands: Vec<Command>,
    pub reply: Reply,
}

#[derive(Debug, Clone)]
pub enum Command {
    Run(Arc<PlannedRun>),
    Event(NewEvent),
    Claim(ClaimRequest),
}

impl Command {
    pub fn run(&self) -> RunId {
        match self {
            Command::Run(planned) => planned.run_id(),
            Command::Event(event) => event.run,
            Command::Claim(claim) => claim.run,
        }
    }
}

/// The recipient of the answer.
#[derive(Debug, Clone)]
pub enum Reply {
    Nobody,
    Callback {
        callback: usize,
        life: u32,
        call: u64,
    },
    Claims {
        stream_id: SchedulerStreamId,
        number: u64,
        indexes: Vec<u32>,
    },
    User {
        call: u64,
        key: Option<Key>,
    },
}

/// The result of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandResult {
    Fold(Verdict),
    Exists,
    /// The run exists with another request; this one is recorded as a conflict.
    Conflict,
    RunUnknown,
    StaleAdmission,
    NotHeld,
    Unavailable,
}

#[derive(Debug)]
pub struct Held {
    pub epoch: Epoch,
    pub watermark: Position,
    pub recorded_at: Timestamp,
    pub runs: BTreeMap<RunId, Run>,
}

/// Work that the lane does before it reads its inbox.
#[derive(Debug)]
pub enum Job {
    Submissions {
        submissions: Vec<Submission>,
        since: Timestamp,
    },
    /// Folds the events that others appended; sends snapshots of a shard that was just acquired.
    CatchUp { shard: ShardId, just_acquired: bool },
}

/// A flush that waits for the database.
#[derive(Debug)]
pub struct FlushInFlight {
    pub number: u64,
    pub job: Job,
    pub pending: PendingFlush,
    pub answers: Vec<Vec<CommandResult>>,
    pub at: Timestamp,
}

pub struct Scheduler {
    pub me: usize,
    pub shards: BTreeMap<ShardId, Held>,
    pub timers: Timers,
    pub streams: DispatcherStreams,
    pub jobs: VecDeque<Job>,
    pub in_flight: Option<FlushInFlight>,
    inbox: VecDeque<ToScheduler>,
    /// The leases that the keeper believes to hold, and until when.
    leases: BTreeMap<ShardId, (Epoch, Timestamp)>,
    generation: u32,
    /// Batches of claims in progress: how many shards have not answered, and the refused claims.
    judging: BTreeMap<(SchedulerStreamId, u64), (usize, BTreeSet<u32>)>,
}

impl Scheduler {
    pub fn new(me: usize, bug: Bug) -> Scheduler {
        let ahead = if matches!(bug, Bug::EarlyTimer | Bug::RetryWithoutDelay) {
            400 * MS
        } else {
            0
        };
        Scheduler {
            me,
            shards: BTreeMap::new(),
            timers: Timers::ahead_by(ahead),
            streams: DispatcherStreams::default(),
            jobs: VecDeque::new(),
            in_flight: None,
            inbox: VecDeque::new(),
            leases: BTreeMap::new(),
            generation: 0,
            judging: BTreeMap::new(),
        }
    }

    pub fn process_id(&self) -> ProcessId {
        ProcessId::Scheduler(self.me)
    }

    pub fn take(&mut self, message: ToScheduler, env: &mut Env) {
        match message {
            ToScheduler::Stored(number, result) => self.stored(number, result, env),
            ToScheduler::RenewLeases => self.renew_leases(env),
            ToScheduler::Claims(stream_id, number, claims) => self.split(stream_id, number, claims),
            other => self.inbox.push_back(other),
        }
        self.drive(env);
    }

    /// Runs one flush after the other; submissions that gathered in between form the next one.
    pub fn drive(&mut self, env: &mut Env) {
        while self.in_flight.is_none() {
            if let Some(job) = self.jobs.pop_front() {
                self.begin(job, env);
                continue;
            }
            let mut submissions = Vec::new();
            while let Some(ToScheduler::Submission(_)) = self.inbox.front() {
                if let Some(ToScheduler::Submission(submission)) = self.inbox.pop_front() {
                    submissions.push(submission);
                }
            }
            if !submissions.is_empty() {
                self.jobs.push_back(Job::Submissions {
                    submissions,
                    since: env.now,
                });
                continue;
            }
            match self.inbox.pop_front() {
                Some(message) => self.handle_control(message, env),
                None => break,
            }
        }
        self.timers.arm_wake_up(env, self.process_id());
    }

    fn handle_control(&mut self, message: ToScheduler, env: &mut Env) {
        match message {
            ToScheduler::Open(stream) => {
                let stream_id = stream.stream_id;
                self.streams.open(stream);
                if env.bug == Bug::SnapshotForgotten && self.streams.seen > 2 {
                    return;
                }
                for shard in self.shards.keys().copied().collect::<Vec<_>>() {
                    self.snapshot(stream_id, shard, env);
                }
            }
            ToScheduler::Close(stream_id) => self.streams.close(stream_id),
            ToScheduler::CatchUp(shard) => self.jobs.push_back(Job::CatchUp {
                shard,
                just_acquired: false,
            }),
            ToScheduler::Wake => self.fire_timers(env),
            ToScheduler::Submission(_)
            | ToScheduler::Stored(..)
            | ToScheduler::RenewLeases
            | ToScheduler::Claims(..) => {}
        }
    }

    pub fn send_snapshots(&mut self, shard: ShardId, env: &mut Env) {
        for stream_id in self.streams.stream_ids() {
            self.snapshot(stream_id, shard, env);
        }
    }

    fn snapshot(&mut self, stream_id: SchedulerStreamId, shard: ShardId, env: &mut Env) {
        let Some(held) = self.shards.get(&shard) else {
            return;
        };
        let mine = held
            .runs
            .values()
            .filter(|run| self.streams.is_holder_for(stream_id, &run.header.tenant));
        let whole = dispatcher_streams::snapshot(shard, held.epoch, mine, env);
        for (admission_shard, epoch) in self.streams.leases_of(stream_id) {
            let newest_epoch = env
                .snapshot_epochs
                .entry((shard, *admission_shard))
                .or_default();
            *newest_epoch = (*newest_epoch).max(*epoch);
        }
        self.streams.send_to(
            stream_id,
            ToDispatcher::Snapshot(stream_id, Box::new(whole)),
            env,
        );
    }

    /// Submits each claim to the shard of its run; the answer waits for all of them.
    fn split(&mut self, stream_id: SchedulerStreamId, number: u64, claims: Vec<ClaimRequest>) {
        let mut by_shard: BTreeMap<ShardId, (Vec<u32>, Vec<Command>)> = BTreeMap::new();
        for (index, claim) in (0u32..).zip(claims) {
            let (indexes, commands) = by_shard.entry(claim.run.shard()).or_default();
            indexes.push(index);
            commands.push(Command::Claim(claim));
        }
        self.judging
            .insert((stream_id, number), (by_shard.len(), BTreeSet::new()));
        for (shard, (indexes, commands)) in by_shard {
            let reply = Reply::Claims {
                stream_id,
                number,
                indexes,
            };
            self.inbox.push_back(ToScheduler::Submission(Submission {
                shard,
                commands,
                reply,
            }));
        }
    }

    pub fn reply(&mut self, reply: Reply, results: Vec<CommandResult>, env: &mut Env) {
        match reply {
            Reply::Nobody => {}
            Reply::Callback {
                callback,
                life,
                call,
            } => {
                let Some(result) = results.into_iter().next() else {
                    return;
                };
                env.answer(
                    life,
                    Message::Callback(callback, ToCallback::Verdict(call, result)),
                );
            }
            Reply::User { call, key } => {
                let Some(result) = results.into_iter().next() else {
                    return;
                };
                env.call(Message::User(ToUser::Answer(call, key, result)));
            }
            Reply::Claims {
                stream_id,
                number,
                indexes,
            } => self.claims_judged(stream_id, number, indexes, results, env),
        }
    }

    fn claims_judged(
        &mut self,
        stream_id: SchedulerStreamId,
        number: u64,
        indexes: Vec<u32>,
        results: Vec<CommandResult>,
        env: &mut Env,
    ) {
        let Some((left, refused)) = self.judging.get_mut(&(stream_id, number)) else {
            return;
        };
        *left -= 1;
        let counts = |result: &CommandResult| {
            matches!(
                result,
                CommandResult::Fold(Verdict::Folded | Verdict::Duplicate | Verdict::Late)
            )
        };
        refused.extend(
            indexes
                .iter()
                .zip(&results)
                .filter(|(_, result)| !counts(result))
                .map(|(index, _)| *index),
        );
        if *left > 0 {
            return;
        }
        let Some((_, refused)) = self.judging.remove(&(stream_id, number)) else {
            return;
        };
        env.note(format_args!(
            "scheduler {} answers batch {number}: {} refused",
            self.me,
            refused.len()
        ));
        self.streams.send_to(
            stream_id,
            ToDispatcher::Results(stream_id, number, refused),
            env,
        );
    }

    /// The round of the lease keeper: renews, rebalances, and looks for appended events.
    fn renew_leases(&mut self, env: &mut Env) {
        env.later(
            ROUND,
            self.process_id(),
            Message::Scheduler(self.me, ToScheduler::RenewLeases),
        );
        if env.database_is_down() {
            return;
        }
        self.drop_after_restart(env);
        let (me, now) = (env.holder(self.process_id()), env.now);
        self.renew_held(env);
        let living = |index: usize| !env.processes[&ProcessId::Scheduler(index)].down;
        let instances = (0..2).filter(|index| living(*index)).count().max(1);
        let share = env.ledger.shards.len().div_ceil(instances);
        while self.leases.len() > share {
            let Some((shard, (epoch, _))) = self.leases.pop_last() else {
                break;
            };
            self.drop_shard(shard, env);
            let row = env.ledger.shard(shard);
            if row.is_held(me, epoch, now) {
                row.holder = None;
                row.lease_until = Timestamp::UNIX_EPOCH;
            }
        }
        for shard in Stream::Execution.shards() {
            let row = env.ledger.shard(shard);
            if self.leases.len() >= share
                || self.leases.contains_key(&shard)
                || row.lease_until > now
                || row.locked
            {
                continue;
            }
            row.epoch = row.epoch.next();
            row.holder = Some(me);
            row.lease_until = now.plus_us(LEASE_TTL);
            let epoch = row.epoch;
            row.grants.push((epoch, now));
            self.leases.insert(shard, (epoch, now.plus_us(LEASE_TTL)));
            self.load(shard, epoch, env);
        }
        env.ledger.flushed();
        if env.bug != Bug::NoSweep {
            for shard in self.leases.keys().copied() {
                let row = env.ledger.shard(shard);
                if row.head() > row.watermark {
                    self.inbox.push_back(ToScheduler::CatchUp(shard));
                }
            }
        }
    }

    /// Drops all leases after a restart of Postgres, because the lane may have failed to load their
    /// shards.
    fn drop_after_restart(&mut self, env: &mut Env) {
        let another =
            std::mem::replace(&mut self.generation, env.ledger.generation) != env.ledger.generation;
        if another && env.bug != Bug::ShardKeptUnloaded {
            for shard in std::mem::take(&mut self.leases).into_keys() {
                self.drop_shard(shard, env);
            }
        }
    }

    fn renew_held(&mut self, env: &mut Env) {
        let (me, now) = (env.holder(self.process_id()), env.now);
        for (shard, (epoch, expires)) in std::mem::take(&mut self.leases) {
            let row = env.ledger.shard(shard);
            if row.is_held(me, epoch, now) && !row.locked {
                row.lease_until = now.plus_us(LEASE_TTL);
                self.leases.insert(shard, (epoch, now.plus_us(LEASE_TTL)));
            } else if row.is_held(me, epoch, now) && expires > now {
                // Not renewed now because the row is locked.
                self.leases.insert(shard, (epoch, expires));
            } else {
                env.note(format_args!("scheduler {} lost shard {shard}", self.me));
                env.stats.shards_moved += 1;
                self.drop_shard(shard, env);
            }
        }
    }

    /// Loads a shard: its open runs, then the events that were appended while it had no holder.
    pub fn load(&mut self, shard: ShardId, epoch: Epoch, env: &mut Env) {
        let (me, now) = (env.holder(self.process_id()), env.now);
        let row = &env.ledger.shards[shard.index()];
        if env.database_is_down() || !row.is_held(me, epoch, now) {
            return;
        }
        let (watermark, recorded_at) = (row.watermark, row.recorded_at);
        let open = env
            .ledger
            .rows
            .values()
            .filter(|row| row.header.run_id.shard() == shard);
        let open: Vec<Run> = open
            .filter(|row| row.run.ended_at.is_none())
            .map(|row| row.restore())
            .collect();
        for row in &env.ledger.admission {
            self.streams.note_epoch(row.shard, row.epoch);
        }
        self.shards.insert(
            shard,
            Held {
                epoch,
                watermark,
                recorded_at,
                runs: BTreeMap::new(),
            },
        );
        self.insert_runs(open);
        self.jobs.push_back(Job::CatchUp {
            shard,
            just_acquired: true,
        });
    }

    pub fn insert_runs(&mut self, runs: Vec<Run>) {
        for run in runs {
            self.timers.arm_run(&run);
            if let Some(held) = self.shards.get_mut(&run.header.run_id.shard()) {
                held.runs.insert(run.header.run_id, run);
            }
        }
    }

    pub fn drop_shard(&mut self, shard: ShardId, env: &mut Env) {
        if self.shards.remove(&shard).is_some() {
            self.streams.send_gone(shard, env);
        }
    }

    pub fn reload_shard(&mut self, shard: ShardId, env: &mut Env) {
        if let Some(held) = self.shards.remove(&shard) {
            self.streams.send_gone(shard, env);
            self.load(shard, held.epoch, env);
        }
    }

    pub fn evict_runs(&mut self, runs: impl IntoIterator<Item = RunId>) {
        for run in runs {
            if let Some(held) = self.shards.get_mut(&run.shard()) {
                held.runs.remove(&run);
            }
        }
    }
}

/// The holder of a shard according to its lease.
pub fn holder_of(shard: ShardId, env: &mut Env) -> Option<usize> {
    let now = env.now;
    let row = env.ledger.shard(shard);
    row.holder
        .filter(|_| row.lease_until > now)
        .map(|(index, _)| index)
}

/// Notifies the holder of a shard; the notification may be lost.
pub fn notify_holder(shard: ShardId, env: &mut Env) {
    let Some(holder) = holder_of(shard, env) else {
        return;
    };
    if env.bug == Bug::NoSweep || (env.faults_on && env.dice.percent(30)) {
        return env.stats.fault(Fault::LostDoorbell);
    }
    let delay = env.dice.between(1, 20) * MS;
    env.schedule(
        delay,
        Message::Scheduler(holder, ToScheduler::CatchUp(shard)),
    );
}
