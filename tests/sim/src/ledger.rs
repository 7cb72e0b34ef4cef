//! The ledger and its projections, as Postgres stores them: dense positions, idempotency keys,
//! leases with epochs, and the fence of `ledger.append_held`. An append may lock its shard's row
//! until a late commit, and commits that were not flushed to disk are lost when Postgres crashes.

use std::collections::{BTreeMap, VecDeque};

use servo_model::{
    AdmissionShard, AttemptId, Epoch, Position, RunId, ShardId, Stream, TaskRef, Timestamp,
};
use servo_scheduler::core::{Event, RunHeader, TimerKind};

use crate::SECOND;
use crate::bugs::Bug;
use crate::rows::{RowWrite, RunRow};

/// How long an asynchronous commit may stay in memory.
const UNFLUSHED: i64 = 600_000;
/// How far a holder's time may differ.
const CLOCK_OFF: i64 = SECOND;

/// A process in one of its lives.
pub type Holder = (usize, u32);

/// The idempotency key of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Requested(RunId),
    /// A conflicting request under the run key.
    Conflicting(RunId),
    Planned(RunId),
    Dispatch(AttemptId),
    Enqueued(AttemptId),
    Started(AttemptId),
    Finished(AttemptId),
    Timer(RunId, Option<TaskRef>, TimerKind, Option<AttemptId>, i64),
    Control(RunId, u64),
}

#[derive(Debug, Clone)]
pub enum Body {
    Requested(RunHeader),
    Core(Event),
}

/// An event to append.
#[derive(Debug, Clone)]
pub struct NewEvent {
    pub id: u64,
    pub shard: ShardId,
    pub run: RunId,
    pub key: Key,
    pub body: Body,
    /// Of the dispatcher, for a claim.
    pub admission_epoch: Epoch,
    /// When the timer was checked; later heartbeats were not known.
    pub judged_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct Recorded {
    pub event: NewEvent,
    pub at: Timestamp,
    /// The lease under which the shard's holder wrote it, and when; `None` for appends of others.
    pub under: Option<(Epoch, Timestamp)>,
}

#[derive(Debug)]
pub struct Shard {
    pub events: Vec<Recorded>,
    pub watermark: Position,
    pub epoch: Epoch,
    pub holder: Option<Holder>,
    pub lease_until: Timestamp,
    pub recorded_at: Timestamp,
    /// Every epoch, and since when the shard was held under it.
    pub grants: Vec<(Epoch, Timestamp)>,
    /// An appender has not committed yet.
    pub locked: bool,
    pub waiting: VecDeque<Store>,
}

impl Shard {
    fn new() -> Shard {
        Shard {
            events: Vec::new(),
            watermark: Position::START,
            epoch: Epoch::NEVER,
            holder: None,
            lease_until: Timestamp::UNIX_EPOCH,
            recorded_at: Timestamp::UNIX_EPOCH,
            grants: Vec::new(),
            locked: false,
            waiting: VecDeque::new(),
        }
    }

    pub fn head(&self) -> Position {
        Position::START.plus(self.events.len() as u32)
    }

    pub fn is_held(&self, holder: Holder, epoch: Epoch, now: Timestamp) -> bool {
        self.holder == Some(holder) && self.epoch == epoch && self.lease_until > now
    }
}

/// A shard in a flush: its lease, and how far its mark moves.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    pub shard: ShardId,
    pub epoch: Epoch,
    pub old: Position,
    pub new: Position,
}

/// A statement, which may have to wait for a row lock.
#[derive(Debug, Clone)]
pub enum Store {
    Fold(Box<Flush>),
    /// By a service that does not hold the shard; `commit_after` is how late it commits.
    Append {
        by: Holder,
        call: u64,
        event: Box<NewEvent>,
        commit_after: i64,
    },
}

/// One statement of the shard's holder.
#[derive(Debug, Clone)]
pub struct Flush {
    pub by: Holder,
    pub number: u64,
    pub marks: Vec<Mark>,
    pub events: Vec<NewEvent>,
    pub rows: Vec<RowWrite>,
    pub at: Timestamp,
    /// The flush contains only claims, so it may be lost with Postgres.
    pub claims_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreError {
    LeaseLost,
    Behind,
    ClockOff,
    KeyTaken,
    /// The connection broke; whether it was stored is unknown.
    Broken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    New,
    Duplicate,
    Conflict,
}

/// Reverts a commit that was not flushed to disk.
#[derive(Debug)]
struct Undo {
    at: Timestamp,
    marks: Vec<(ShardId, Position, Position)>,
    rows: Vec<(RunId, Option<RunRow>)>,
    keys: Vec<Key>,
}

#[derive(Debug)]
pub struct Ledger {
    pub shards: Vec<Shard>,
    pub admission: Vec<AdmissionRow>,
    keys: BTreeMap<Key, (u64, u64)>,
    pub rows: BTreeMap<RunId, RunRow>,
    unflushed: Vec<Undo>,
    pub bug: Bug,
    /// Postgres is unreachable until this time.
    pub down_until: Timestamp,
    /// Increases with every restart.
    pub generation: u32,
    /// The times of all restarts.
    pub starts: Vec<Timestamp>,
    pub violation: Option<String>,
    pub lost_commits: u64,
}

/// The lease on a dispatcher's shard.
#[derive(Debug, Clone)]
pub struct AdmissionRow {
    pub shard: AdmissionShard,
    pub epoch: Epoch,
    pub holder: Option<Holder>,
    pub lease_until: Timestamp,
}

impl AdmissionRow {
    fn new(shard: AdmissionShard) -> AdmissionRow {
        AdmissionRow {
            shard,
            epoch: Epoch::NEVER,
            holder: None,
            lease_until: Timestamp::UNIX_EPOCH,
        }
    }
}

impl Ledger {
    pub fn new(bug: Bug) -> Ledger {
        Ledger {
            shards: Stream::Execution.shards().map(|_| Shard::new()).collect(),
            admission: AdmissionShard::all().map(AdmissionRow::new).collect(),
            keys: BTreeMap::new(),
            rows: BTreeMap::new(),
            unflushed: Vec::new(),
            bug,
            down_until: Timestamp::UNIX_EPOCH,
            generation: 0,
            violation: None,
            lost_commits: 0,
            starts: Vec::new(),
        }
    }

    pub fn shard(&mut self, shard: ShardId) -> &mut Shard {
        &mut self.shards[shard.index()]
    }

    /// The rules of `ledger.append_held`: applies the whole statement, or returns an error and
    /// applies nothing.
    pub fn append_held(&mut self, flush: &Flush, now: Timestamp) -> Result<(), StoreError> {
        if now.us_since(flush.at).abs() > CLOCK_OFF {
            return Err(StoreError::ClockOff);
        }
        for mark in &flush.marks {
            let appended = flush
                .events
                .iter()
                .filter(|event| event.shard == mark.shard)
                .count() as u32;
            self.fence(flush.by, mark, appended, now)?;
        }
        if flush
            .events
            .iter()
            .any(|event| self.keys.contains_key(&event.key))
        {
            return Err(StoreError::KeyTaken);
        }
        let undo = Undo {
            at: now,
            marks: flush
                .marks
                .iter()
                .map(|mark| self.mark_before(mark.shard))
                .collect(),
            rows: flush
                .rows
                .iter()
                .map(|row| (row.run, self.rows.get(&row.run).cloned()))
                .collect(),
            keys: flush.events.iter().map(|event| event.key).collect(),
        };
        for event in &flush.events {
            let epoch = flush
                .marks
                .iter()
                .find(|mark| mark.shard == event.shard)
                .map(|mark| mark.epoch);
            self.insert(event, flush.at, epoch.map(|epoch| (epoch, now)));
        }
        for mark in &flush.marks {
            self.shard(mark.shard).watermark = mark.new;
        }
        for row in &flush.rows {
            row.apply(&mut self.rows);
        }
        if flush.claims_only {
            self.unflushed.push(undo);
        } else {
            self.unflushed.clear();
        }
        Ok(())
    }

    fn fence(
        &self,
        by: Holder,
        mark: &Mark,
        appended: u32,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let bug = self.bug;
        let shard = &self.shards[mark.shard.index()];
        let held = shard.is_held(by, mark.epoch, now);
        let in_step = shard.watermark == mark.old;
        let fits = match appended {
            0 => (mark.old..=shard.head()).contains(&mark.new),
            _ => shard.head().plus(appended) == mark.new,
        };
        if !(held || matches!(bug, Bug::FenceOff | Bug::StaleLeaseAccepted))
            || !(in_step || bug == Bug::FenceOff)
        {
            return Err(StoreError::LeaseLost);
        }
        if !(fits || bug == Bug::FenceOff) {
            return Err(StoreError::Behind);
        }
        Ok(())
    }

    fn mark_before(&self, shard: ShardId) -> (ShardId, Position, Position) {
        let before = &self.shards[shard.index()];
        (shard, before.head(), before.watermark)
    }

    fn insert(&mut self, event: &NewEvent, at: Timestamp, under: Option<(Epoch, Timestamp)>) {
        self.keys
            .insert(event.key, (event.id, hash_body(&event.body)));
        let shard = self.shard(event.shard);
        shard.recorded_at = shard.recorded_at.max(at);
        let at = shard.recorded_at;
        shard.events.push(Recorded {
            event: event.clone(),
            at,
            under,
        });
    }

    /// Appends an event of another service at the head, with the database's time.
    pub fn append(&mut self, event: &NewEvent, now: Timestamp) -> Appended {
        let body = hash_body(&event.body);
        match self.keys.get(&event.key) {
            Some((_, same)) if *same == body => Appended::Duplicate,
            Some(_) => Appended::Conflict,
            None => {
                self.insert(event, now, None);
                self.unflushed.clear();
                Appended::New
            }
        }
    }

    pub fn has(&self, key: &Key) -> bool {
        self.keys.contains_key(key)
    }

    /// A synchronous commit, which flushes all earlier commits to disk.
    pub fn flushed(&mut self) {
        self.unflushed.clear();
    }

    /// Crashes Postgres: drops locks, waiting statements and up to `lost` of the last asynchronous
    /// commits.
    pub fn crash(&mut self, now: Timestamp, lost: usize, back_at: Timestamp) -> Vec<Store> {
        let mut undone = 0;
        while undone < lost
            && self
                .unflushed
                .last()
                .is_some_and(|undo| undo.at.plus_us(UNFLUSHED) > now)
        {
            let Some(undo) = self.unflushed.pop() else {
                break;
            };
            self.undo(undo);
            undone += 1;
        }
        self.lost_commits += undone as u64;
        self.unflushed.clear();
        self.down_until = back_at;
        self.generation += 1;
        self.starts.push(back_at);
        self.shards
            .iter_mut()
            .for_each(|shard| shard.locked = false);
        self.shards
            .iter_mut()
            .flat_map(|shard| shard.waiting.drain(..))
            .collect()
    }

    fn undo(&mut self, undo: Undo) {
        for (shard, head, watermark) in undo.marks {
            let shard = self.shard(shard);
            shard.events.truncate(head.get() as usize);
            shard.watermark = watermark;
        }
        for (run, row) in undo.rows {
            match row {
                Some(row) => self.rows.insert(run, row),
                None => self.rows.remove(&run),
            };
        }
        self.keys.retain(|key, _| !undo.keys.contains(key));
    }
}

/// Equal for equal bodies; only the outcome and the session matter.
fn hash_body(body: &Body) -> u64 {
    match body {
        Body::Core(Event::TaskFinished(finished)) => finished
            .session
            .wrapping_mul(31)
            .wrapping_add(outcome_number(&finished.outcome)),
        Body::Core(Event::TaskStarted { session, .. }) => *session,
        _ => 0,
    }
}

fn outcome_number(outcome: &servo_scheduler::core::Outcome) -> u64 {
    use servo_scheduler::core::Outcome;
    match outcome {
        Outcome::Succeeded => 1,
        Outcome::Quarantined { .. } => 2,
        Outcome::CheckFailed => 3,
        Outcome::Failed { .. } => 4,
        Outcome::Skipped => 5,
        Outcome::Cancelled => 6,
        Outcome::Interrupted => 7,
    }
}
