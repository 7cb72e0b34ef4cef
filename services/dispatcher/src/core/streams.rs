//! The state of each execution shard: which stream reported it, and for which admission shards
//! the report is complete.

use std::collections::HashMap;

use servo_model::{AdmissionShard, AttemptId, Epoch, ShardId, Stream};

use super::admission::Snapshot;

/// One stream to a scheduler, from its opening to its end. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u64);

/// A set of admission shards as a bit mask.
pub(crate) type ShardSet = u16;
const _: () = assert!(Stream::Dispatch.shard_count() as u32 == ShardSet::BITS);

/// One execution shard.
#[derive(Debug, Default)]
pub(crate) struct ShardState {
    /// The open stream whose snapshot of this shard is complete.
    pub(crate) source: Option<SourceId>,
    pub(crate) epoch: Epoch,
    /// The admission shards whose live attempts on this shard were reported since we acquired them.
    /// The bits stay set when the stream ends, because only this instance can add live attempts.
    pub(crate) complete_for: ShardSet,
    /// A snapshot whose last part has not arrived.
    pub(crate) partial: Option<(SourceId, Snapshot)>,
}

/// All execution shards, and the batches of claims that are not answered yet.
#[derive(Debug)]
pub(crate) struct Streams {
    shards: Vec<ShardState>,
    /// The admission shards that each stream was opened for.
    opened_for: HashMap<SourceId, ShardSet>,
    batches: HashMap<(SourceId, u64), Vec<AttemptId>>,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams {
            shards: (Stream::Execution.shards())
                .map(|_| ShardState::default())
                .collect(),
            opened_for: HashMap::new(),
            batches: HashMap::new(),
        }
    }
}

impl Streams {
    pub(crate) fn open(
        &mut self,
        source: SourceId,
        shards: impl IntoIterator<Item = AdmissionShard>,
    ) {
        let set = shards.into_iter().fold(0, |set, shard| set | bit(shard));
        self.opened_for.insert(source, set);
    }

    pub(crate) fn is_open(&self, source: SourceId) -> bool {
        self.opened_for.contains_key(&source)
    }

    /// Removes a stream. Returns the execution shards that it reported and its unanswered claims.
    pub(crate) fn close(&mut self, source: SourceId) -> (Vec<ShardId>, Vec<AttemptId>) {
        let detached = self.detach(source);
        let numbers: Vec<_> = self
            .batches
            .keys()
            .filter(|(from, _)| *from == source)
            .copied()
            .collect();
        let unanswered = numbers
            .iter()
            .filter_map(|number| self.batches.remove(number))
            .flatten()
            .collect();
        (detached, unanswered)
    }

    /// Ignores further snapshots and updates of a stream. Answers to its claims still count.
    pub(crate) fn detach(&mut self, source: SourceId) -> Vec<ShardId> {
        self.opened_for.remove(&source);
        let mut detached = Vec::new();
        for (shard, state) in Stream::Execution.shards().zip(&mut self.shards) {
            if state
                .partial
                .as_ref()
                .is_some_and(|(from, _)| *from == source)
            {
                state.partial = None;
            }
            if state.source == Some(source) {
                state.source = None;
                detached.push(shard);
            }
        }
        detached
    }

    pub(crate) fn shard(&mut self, shard: ShardId) -> Option<&mut ShardState> {
        self.shards.get_mut(shard.index())
    }

    /// Returns the stream that a shard's claims are sent on.
    pub(crate) fn source_of(&self, shard: ShardId) -> Option<SourceId> {
        self.shards.get(shard.index())?.source
    }

    /// Records that the whole shard was reported on `source`.
    pub(crate) fn complete(&mut self, shard: ShardId, source: SourceId, epoch: Epoch) {
        let opened_for = self.opened_for.get(&source).copied().unwrap_or_default();
        if let Some(state) = self.shard(shard) {
            state.source = Some(source);
            state.epoch = epoch;
            state.complete_for |= opened_for;
        }
    }

    /// Returns whether every live attempt of the admission shard's tenants is known.
    pub(crate) fn is_complete(&self, admission_shard: AdmissionShard) -> bool {
        self.shards
            .iter()
            .all(|state| state.complete_for & bit(admission_shard) != 0)
    }

    /// Discards what was reported for an admission shard.
    pub(crate) fn forget(&mut self, admission_shard: AdmissionShard) {
        for state in &mut self.shards {
            state.complete_for &= !bit(admission_shard);
        }
    }

    pub(crate) fn add_batch(&mut self, source: SourceId, number: u64, claims: Vec<AttemptId>) {
        self.batches.insert((source, number), claims);
    }

    pub(crate) fn take_batch(&mut self, source: SourceId, number: u64) -> Vec<AttemptId> {
        self.batches.remove(&(source, number)).unwrap_or_default()
    }

    /// Counts the batches of claims on this stream that are not answered yet.
    pub(crate) fn pending_batches(&self, source: SourceId) -> usize {
        self.batches
            .keys()
            .filter(|(from, _)| *from == source)
            .count()
    }
}

fn bit(admission_shard: AdmissionShard) -> ShardSet {
    1 << u32::from(admission_shard)
}
