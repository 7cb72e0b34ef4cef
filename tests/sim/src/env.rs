//! What every process of the world shares: time, chance, the wires between them and the database.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write;
use std::sync::Arc;

use servo_dispatcher::core::SourceId;
use servo_model::{AttemptId, RunId};
use servo_scheduler::core::Time;

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
    /// An append that took its row commits, unless Postgres died meanwhile.
    Commit(i16, u32, Store),
    Fault(Fault),
    Revive(ProcessId),
}

/// Where a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessId {
    Scheduler(usize),
    Dispatcher(usize),
    Callback(usize),
    Worker(usize),
}

#[derive(Debug, Clone, Default)]
pub struct Process {
    pub life: u32,
    pub down: bool,
    pub paused_until: Time,
}

/// A stream in order, both ways, until it breaks.
#[derive(Debug, Clone)]
pub struct Wire {
    pub ends: [ProcessId; 2],
    pub lives: [u32; 2],
    pub broken: bool,
    last: [Time; 2],
}

struct Entry {
    at: Time,
    number: u64,
    /// The life of the receiver that it is meant for; `None` takes any.
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
    pub now: Time,
    pub dice: Dice,
    pub ledger: Ledger,
    pub planned_runs: BTreeMap<RunId, Arc<PlannedRun>>,
    pub processes: BTreeMap<ProcessId, Process>,
    pub wires: BTreeMap<u64, Wire>,
    pub stats: Stats,
    pub bug: Bug,
    /// Messages get lost and doubled, workers misbehave.
    pub faults_on: bool,
    /// Which sessions began each attempt's body, and whether they had to ask before.
    pub begun: BTreeMap<AttemptId, Vec<(u64, bool)>>,
    /// When each attempt's beats were stored.
    pub beats: BTreeMap<AttemptId, Vec<Time>>,
    /// What somebody was told to be stored.
    pub promised: Vec<(Key, &'static str)>,
    /// The newest dispatcher that was told all of a shard of runs, by admission shard.
    pub snapshot_epochs: BTreeMap<(i16, i16), u64>,
    queue: BinaryHeap<Reverse<Entry>>,
    numbers: u64,
    pub hash: u64,
    pub story: Option<Vec<String>>,
}

impl Env {
    pub fn new(seed: u64, bug: Bug, tell: bool) -> Env {
        Env {
            now: 0,
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
            story: tell.then(Vec::new),
        }
    }

    /// A number that nobody else has.
    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Something happened that the trace must show.
    pub fn note(&mut self, what: std::fmt::Arguments<'_>) {
        let mut hash = Hash(self.hash);
        let _ = hash.write_fmt(format_args!("{} {what}\n", self.now));
        self.hash = hash.0;
        if let Some(story) = &mut self.story {
            story.push(format!("{:>10.3} {what}", self.now as f64 / 1e3));
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

    /// A call without a wire of its own: it may get lost, doubled, late.
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

    /// What happens to a message makes a difference if there is somebody to take it.
    fn fault_to(&mut self, message: &Message, fault: Fault) {
        if recipient(message).is_none_or(|process_id| !self.processes[&process_id].down) {
            self.stats.fault(fault);
        }
    }

    /// The answer to a process that waits for it, in its present life.
    pub fn answer(&mut self, life: u32, message: Message) {
        if self.faults_on && self.dice.percent(3) {
            return self.lose(&message);
        }
        let delay = self.delay(&message);
        self.put(delay, Some(life), None, message);
    }

    /// Something that a process told itself.
    pub fn later(&mut self, delay: Time, process_id: ProcessId, message: Message) {
        let life = self.life(process_id);
        self.put(delay, Some(life), None, message);
    }

    /// Something of the world, not of a process.
    pub fn schedule(&mut self, delay: Time, message: Message) {
        self.put(delay, None, None, message);
    }

    pub fn store(&mut self, store: Store) {
        let delay = self.dice.between(100, 900);
        self.put(delay, None, None, Message::Database(store));
    }

    fn delay(&mut self, message: &Message) -> Time {
        if self.faults_on && self.dice.percent(4) {
            self.fault_to(message, Fault::LateMessage);
            return self.dice.between(50, 1_500) * MS;
        }
        self.dice.between(100, 3_000)
    }

    fn put(&mut self, delay: Time, life: Option<u32>, wire: Option<u64>, message: Message) {
        let entry = Entry {
            at: self.now + delay.max(1),
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
                last: [0; 2],
            },
        );
        number
    }

    /// On a wire nothing overtakes and nothing is lost, until all of it is.
    pub fn on_wire(&mut self, wire: u64, to_end: usize, extra: Time, message: Message) {
        let delay = self.delay(&message) + extra;
        let now = self.now;
        let Some(open) = self.wires.get_mut(&wire).filter(|wire| !wire.broken) else {
            return;
        };
        let at = (now + delay).max(open.last[to_end] + 1);
        open.last[to_end] = at;
        let life = open.lives[to_end];
        self.put(at - now, Some(life), Some(wire), message);
    }

    /// Both ends learn of it, each at its time.
    pub fn break_wire(&mut self, wire: u64) {
        let Some(open) = self.wires.get_mut(&wire).filter(|wire| !wire.broken) else {
            return;
        };
        open.broken = true;
        let open = open.clone();
        for (end, process_id) in open.ends.into_iter().enumerate() {
            let delay = self.dice.between(1, 400) * MS;
            let source = SourceId(wire);
            let message = match (process_id, open.ends[1 - end]) {
                (ProcessId::Scheduler(index), _) => {
                    Message::Scheduler(index, ToScheduler::Close(source))
                }
                (ProcessId::Dispatcher(index), ProcessId::Scheduler(_)) => {
                    Message::Dispatcher(index, ToDispatcher::Closed(source))
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

    /// The next thing that somebody is there to take.
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
                // Its loops wake up with it, but not at once: what was sent to it may be taken first.
                let is_round =
                    matches!(&entry.message, Message::Dispatcher(_, ToDispatcher::Leases));
                let late = if is_round {
                    self.dice.between(0, 250) * MS
                } else {
                    0
                };
                // Its number stays, so that what was sent first is taken first.
                let at = process.paused_until + late;
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

/// FNV-1a over what is written.
struct Hash(u64);

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 = text.bytes().fold(self.0, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Ok(())
    }
}
