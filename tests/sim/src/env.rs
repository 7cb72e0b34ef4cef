//! The environment that all processes share: time, randomness, wires and the database.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write;
use std::sync::Arc;

use servo_dispatcher::core::SchedulerStreamId;
use servo_model::{AdmissionShard, AttemptId, Epoch, RunId, ShardId, Timestamp};

use crate::MS;
use crate::bugs::Bug;
use crate::callback::ToCallback;
use crate::dice::Dice;
use crate::dispatcher::ToDispatcher;
use crate::faults::Fault;
use crate::ledger::{Holder, Key, Ledger, Store};
use crate::planned_run::PlannedRun;
use crate::scheduler::ToScheduler;
use crate::stats::Stats;
use crate::user::ToUser;
use crate::worker::ToWorker;

#[derive(Debug, Clone)]
pub enum Message {
    Scheduler(usize, ToScheduler),
    Dispatcher(usize, ToDispatcher),
    Callback(usize, ToCallback),
    Worker(usize, ToWorker),
    User(ToUser),
    Database(Store),
    /// Commits an append that holds its row lock, unless Postgres has crashed.
    Commit(ShardId, u32, Store),
    Fault(Fault),
    Revive(ProcessId),
}

/// Identifies a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessId {
    Scheduler(usize),
    Dispatcher(usize),
    Callback(usize),
    Worker(usize),
}

#[derive(Debug, Clone)]
pub struct Process {
    pub life: u32,
    pub down: bool,
    pub paused_until: Timestamp,
}

/// A bidirectional stream that keeps the order until it breaks.
#[derive(Debug, Clone)]
pub struct Wire {
    pub ends: [ProcessId; 2],
    pub lives: [u32; 2],
    pub broken: bool,
    last: [Timestamp; 2],
}

struct Entry {
    at: Timestamp,
    number: u64,
    /// The life of the receiver; `None` matches any.
    life: Option<u32>,
    wire: Option<u64>,
    message: Message,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

pub struct Env {
    pub now: Timestamp,
    pub dice: Dice,
    pub ledger: Ledger,
    pub planned_runs: BTreeMap<RunId, Arc<PlannedRun>>,
    pub processes: BTreeMap<ProcessId, Process>,
    pub wires: BTreeMap<u64, Wire>,
    pub stats: Stats,
    pub bug: Bug,
    /// Messages are lost and duplicated, workers misbehave.
    pub faults_on: bool,
    /// The sessions that executed each attempt, and whether they needed permission.
    pub begun: BTreeMap<AttemptId, Vec<(u64, bool)>>,
    /// When each attempt's heartbeats were stored.
    pub beats: BTreeMap<AttemptId, Vec<Timestamp>>,
    /// The events that were acknowledged, and to whom.
    pub promised: Vec<(Key, &'static str)>,
    /// The newest admission epoch that received a snapshot of a shard of runs, by admission shard.
    pub snapshot_epochs: BTreeMap<(ShardId, AdmissionShard), Epoch>,
    queue: BinaryHeap<Reverse<Entry>>,
    numbers: u64,
    pub hash: u64,
    pub trace: Option<Vec<String>>,
}

impl Env {
    pub fn new(seed: u64, bug: Bug, record_trace: bool) -> Env {
        Env {
            now: Timestamp::UNIX_EPOCH,
            dice: Dice::new(seed),
            ledger: Ledger::new(bug),
            planned_runs: BTreeMap::new(),
            processes: BTreeMap::new(),
            wires: BTreeMap::new(),
            stats: Stats::default(),
            bug,
            faults_on: true,
            begun: BTreeMap::new(),
            beats: BTreeMap::new(),
            promised: Vec::new(),
            snapshot_epochs: BTreeMap::new(),
            queue: BinaryHeap::new(),
            numbers: 0,
            hash: 0xcbf2_9ce4_8422_2325,
            trace: record_trace.then(Vec::new),
        }
    }

    /// A unique number.
    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Adds a line to the trace and its hash.
    pub fn note(&mut self, what: std::fmt::Arguments<'_>) {
        let mut hash = Hash(self.hash);
        let _ = hash.write_fmt(format_args!("{} {what}\n", self.now.unix_us()));
        self.hash = hash.0;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>10.3} {what}", self.now.unix_us() as f64 / 1e3));
        }
    }

    pub fn life(&self, process_id: ProcessId) -> u32 {
        self.processes[&process_id].life
    }

    pub fn holder(&self, process_id: ProcessId) -> Holder {
        let index = match process_id {
            ProcessId::Scheduler(index)
            | ProcessId::Dispatcher(index)
            | ProcessId::Callback(index)
            | ProcessId::Worker(index) => index,
        };
        (index, self.life(process_id))
    }

    pub fn database_is_down(&self) -> bool {
        self.now < self.ledger.down_until
    }

    /// Sends a call without a wire: it may be lost, duplicated or late.
    pub fn call(&mut self, message: Message) {
        if self.faults_on && self.dice.percent(3) {
            return self.lose(&message);
        }
        if self.faults_on && self.dice.percent(3) {
            self.fault_to(&message, Fault::DoubleMessage);
            let delay = self.delay(&message);
            self.put(delay, None, None, message.clone());
        }
        let delay = self.delay(&message);
        self.put(delay, None, None, message);
    }

    fn lose(&mut self, message: &Message) {
        self.fault_to(message, Fault::DropMessage);
        self.note(format_args!("lost: {}", name(message)));
    }

    /// Counts a fault only if the receiver is running.
    fn fault_to(&mut self, message: &Message, fault: Fault) {
        if recipient(message).is_none_or(|process_id| !self.processes[&process_id].down) {
            self.stats.fault(fault);
        }
    }

    /// Sends an answer to a process in its present life.
    pub fn answer(&mut self, life: u32, message: Message) {
        if self.faults_on && self.dice.percent(3) {
            return self.lose(&message);
        }
        let delay = self.delay(&message);
        self.put(delay, Some(life), None, message);
    }

    /// Schedules a message of a process to itself.
    pub fn later(&mut self, delay: i64, process_id: ProcessId, message: Message) {
        let life = self.life(process_id);
        self.put(delay, Some(life), None, message);
    }

    /// Schedules a message of the environment.
    pub fn schedule(&mut self, delay: i64, message: Message) {
        self.put(delay, None, None, message);
    }

    pub fn store(&mut self, store: Store) {
        let delay = self.dice.between(100, 900);
        self.put(delay, None, None, Message::Database(store));
    }

    fn delay(&mut self, message: &Message) -> i64 {
        if self.faults_on && self.dice.percent(4) {
            self.fault_to(message, Fault::LateMessage);
            return self.dice.between(50, 1_500) * MS;
        }
        self.dice.between(100, 3_000)
    }

    fn put(&mut self, delay: i64, life: Option<u32>, wire: Option<u64>, message: Message) {
        let entry = Entry {
            at: self.now.plus_us(delay.max(1)),
            number: self.number(),
            life,
            wire,
            message,
        };
        self.queue.push(Reverse(entry));
    }

    pub fn open_wire(&mut self, from: ProcessId, to: ProcessId) -> u64 {
        let number = self.number();
        let lives = [self.life(from), self.life(to)];
        self.wires.insert(
            number,
            Wire {
                ends: [from, to],
                lives,
                broken: false,
                last: [Timestamp::UNIX_EPOCH; 2],
            },
        );
        number
    }

    /// Sends a message on a wire, which keeps the order and loses nothing until it breaks.
    pub fn on_wire(&mut self, wire: u64, to_end: usize, extra: i64, message: Message) {
        let delay = self.delay(&message) + extra;
        let now = self.now;
        let Some(open) = self.wires.get_mut(&wire).filter(|wire| !wire.broken) else {
            return;
        };
        let at = now.plus_us(delay).max(open.last[to_end].plus_us(1));
        open.last[to_end] = at;
        let life = open.lives[to_end];
        self.put(at.us_since(now), Some(life), Some(wire), message);
    }

    /// Breaks a wire; its ends notice at different times.
    pub fn break_wire(&mut self, wire: u64) {
        let Some(open) = self.wires.get_mut(&wire).filter(|wire| !wire.broken) else {
            return;
        };
        open.broken = true;
        let open = open.clone();
        for (end, process_id) in open.ends.into_iter().enumerate() {
            let delay = self.dice.between(1, 400) * MS;
            let stream_id = SchedulerStreamId(wire);
            let message = match (process_id, open.ends[1 - end]) {
                (ProcessId::Scheduler(index), _) => {
                    Message::Scheduler(index, ToScheduler::Close(stream_id))
                }
                (ProcessId::Dispatcher(index), ProcessId::Scheduler(_)) => {
                    Message::Dispatcher(index, ToDispatcher::Closed(stream_id))
                }
                (ProcessId::Dispatcher(index), _) => {
                    Message::Dispatcher(index, ToDispatcher::Disconnected(wire))
                }
                (ProcessId::Worker(index), _) => {
                    Message::Worker(index, ToWorker::Disconnected(wire))
                }
                (ProcessId::Callback(_), _) => continue,
            };
            self.put(delay, Some(open.lives[end]), None, message);
        }
    }

    pub fn break_wires_of(&mut self, process_id: ProcessId) {
        let wires: Vec<u64> = self
            .wires
            .iter()
            .filter(|(_, wire)| wire.ends.contains(&process_id))
            .map(|(id, _)| *id)
            .collect();
        wires.into_iter().for_each(|wire| self.break_wire(wire));
        self.wires.retain(|_, wire| !wire.broken);
    }

    /// Returns the next message whose receiver is running.
    pub fn next_message(&mut self) -> Option<Message> {
        while let Some(Reverse(entry)) = self.queue.pop() {
            self.now = entry.at;
            if entry
                .wire
                .is_some_and(|wire| self.wires.get(&wire).is_none_or(|wire| wire.broken))
            {
                continue;
            }
            let Some(process_id) = recipient(&entry.message) else {
                return Some(entry.message);
            };
            let process = &self.processes[&process_id];
            if process.down || entry.life.is_some_and(|life| life != process.life) {
                continue;
            }
            if process.paused_until > self.now {
                // Its loops resume with a delay, so that messages may be handled before them.
                let is_round =
                    matches!(&entry.message, Message::Dispatcher(_, ToDispatcher::Leases));
                let late = if is_round {
                    self.dice.between(0, 250) * MS
                } else {
                    0
                };
                // The number is kept, so that the order of messages is kept.
                let at = process.paused_until.plus_us(late);
                self.queue.push(Reverse(Entry { at, ..entry }));
                continue;
            }
            return Some(entry.message);
        }
        None
    }
}

fn recipient(message: &Message) -> Option<ProcessId> {
    match message {
        Message::Scheduler(index, _) => Some(ProcessId::Scheduler(*index)),
        Message::Dispatcher(index, _) => Some(ProcessId::Dispatcher(*index)),
        Message::Callback(index, _) => Some(ProcessId::Callback(*index)),
        Message::Worker(index, _) => Some(ProcessId::Worker(*index)),
        _ => None,
    }
}

fn name(message: &Message) -> &'static str {
    match message {
        Message::Scheduler(..) => "to a scheduler",
        Message::Dispatcher(..) => "to a dispatcher",
        Message::Callback(..) => "to a callback",
        Message::Worker(..) => "to a worker",
        Message::User(_) => "to a user",
        _ => "to the world",
    }
}

/// FNV-1a over the written text.
struct Hash(u64);

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 = text.bytes().fold(self.0, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Ok(())
    }
}
