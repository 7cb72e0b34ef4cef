//! The state of each execution shard: which stream reported it, and for which admission shards
//! the report is complete. A stream here is a dispatcher stream (`Admit`), seen from the
//! dispatcher; execution shards are shards of the ledger's stream of that name.

use std::collections::HashMap;

use servo_model::{AdmissionShard, AttemptId, Epoch, ShardId, Stream};

use super::admission::Snapshot;

/// One stream to a scheduler, from its opening to its end. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchedulerStreamId(pub u64);

/// A set of admission shards as a bit mask.
pub(crate) type AdmissionShardSet = u16;
const _: () = assert!(Stream::Dispatch.shard_count() as u32 == AdmissionShardSet::BITS);

/// One execution shard.
#[derive(Debug, Default)]
pub(crate) struct ShardState {
    /// The open stream whose snapshot of this shard is complete.
    pub(crate) stream_id: Option<SchedulerStreamId>,
    pub(crate) epoch: Epoch,
    /// The admission shards whose live attempts on this shard were reported since we acquired them.
    /// The bits stay set when the stream ends, because only this instance can add live attempts.
    pub(crate) complete_for: AdmissionShardSet,
    /// A snapshot whose last part has not arrived.
    pub(crate) partial: Option<(SchedulerStreamId, Snapshot)>,
}

/// All execution shards, and the batches of claims that are not answered yet.
#[derive(Debug)]
pub(crate) struct Streams {
    execution_shards: Vec<ShardState>,
    /// The admission shards that each stream was opened for.
    opened_for: HashMap<SchedulerStreamId, AdmissionShardSet>,
    batches: HashMap<(SchedulerStreamId, u64), Vec<AttemptId>>,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams {
            execution_shards: (Stream::Execution.shards())
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
        stream_id: SchedulerStreamId,
        admission_shards: impl IntoIterator<Item = AdmissionShard>,
    ) {
        let set = admission_shards
            .into_iter()
            .fold(0, |set, shard| set | bit(shard));
        self.opened_for.insert(stream_id, set);
    }

    pub(crate) fn is_open(&self, stream_id: SchedulerStreamId) -> bool {
        self.opened_for.contains_key(&stream_id)
    }

    /// Removes a stream. Returns the execution shards that it reported and its unanswered claims.
    pub(crate) fn close(&mut self, stream_id: SchedulerStreamId) -> (Vec<ShardId>, Vec<AttemptId>) {
        let detached = self.detach(stream_id);
        let numbers: Vec<_> = self
            .batches
            .keys()
            .filter(|(from, _)| *from == stream_id)
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
    pub(crate) fn detach(&mut self, stream_id: SchedulerStreamId) -> Vec<ShardId> {
        self.opened_for.remove(&stream_id);
        let mut detached = Vec::new();
        for (shard, state) in Stream::Execution.shards().zip(&mut self.execution_shards) {
            if state
                .partial
                .as_ref()
                .is_some_and(|(from, _)| *from == stream_id)
            {
                state.partial = None;
            }
            if state.stream_id == Some(stream_id) {
                state.stream_id = None;
                detached.push(shard);
            }
        }
        detached
    }

    pub(crate) fn shard(&mut self, shard: ShardId) -> Option<&mut ShardState> {
        self.execution_shards.get_mut(shard.index())
    }

    /// Returns the stream that a shard's claims are sent on.
    pub(crate) fn stream_of(&self, shard: ShardId) -> Option<SchedulerStreamId> {
        self.execution_shards.get(shard.index())?.stream_id
    }

    /// Records that the whole shard was reported on this stream.
    pub(crate) fn complete(&mut self, shard: ShardId, stream_id: SchedulerStreamId, epoch: Epoch) {
        let opened_for = self.opened_for.get(&stream_id).copied().unwrap_or_default();
        if let Some(state) = self.shard(shard) {
            state.stream_id = Some(stream_id);
            state.epoch = epoch;
            state.complete_for |= opened_for;
        }
    }

    /// Returns whether every live attempt of the admission shard's tenants is known.
    pub(crate) fn is_complete(&self, admission_shard: AdmissionShard) -> bool {
        self.execution_shards
            .iter()
            .all(|state| state.complete_for & bit(admission_shard) != 0)
    }

    /// Discards what was reported for an admission shard.
    pub(crate) fn forget(&mut self, admission_shard: AdmissionShard) {
        for state in &mut self.execution_shards {
            state.complete_for &= !bit(admission_shard);
        }
    }

    pub(crate) fn add_batch(
        &mut self,
        stream_id: SchedulerStreamId,
        number: u64,
        claims: Vec<AttemptId>,
    ) {
        self.batches.insert((stream_id, number), claims);
    }

    pub(crate) fn take_batch(
        &mut self,
        stream_id: SchedulerStreamId,
        number: u64,
    ) -> Vec<AttemptId> {
        self.batches
            .remove(&(stream_id, number))
            .unwrap_or_default()
    }

    /// Counts the batches of claims on this stream that are not answered yet.
    pub(crate) fn pending_batches(&self, stream_id: SchedulerStreamId) -> usize {
        self.batches
            .keys()
            .filter(|(from, _)| *from == stream_id)
            .count()
    }
}

fn bit(admission_shard: AdmissionShard) -> AdmissionShardSet {
    1 << u32::from(admission_shard)
}
