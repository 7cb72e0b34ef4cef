//! What is known of each shard of runs: which stream told it, and for which admission shards it is complete.

use std::collections::HashMap;

use servo_model::{AttemptId, Stream};

use super::offers::Snapshot;

/// One stream to a scheduler, from its opening to its end. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u64);

/// A set of admission shards.
pub(crate) type ShardSet = u16;
const _: () = assert!(Stream::Dispatch.shards() as u32 == ShardSet::BITS);

/// One shard of runs.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The stream whose snapshot was complete, while it lives.
    pub(crate) source: Option<SourceId>,
    pub(crate) epoch: u64,
    /// The admission shards whose live attempts here have been told since they were acquired. They stay told when
    /// the stream ends: nobody but us can add to them.
    pub(crate) complete_for: ShardSet,
    /// A snapshot of which the last part is missing.
    pub(crate) coming: Option<(SourceId, Snapshot)>,
}

/// All shards of runs, and the claims that wait for an answer.
#[derive(Debug)]
pub(crate) struct Streams {
    shards: Vec<Told>,
    /// The admission shards that each stream was opened for.
    opened_for: HashMap<SourceId, ShardSet>,
    batches: HashMap<(SourceId, u64), Vec<AttemptId>>,
}

impl Default for Streams {
    fn default() -> Streams {
        let shards = (0..Stream::Execution.shards())
            .map(|_| Told::default())
            .collect();
        Streams {
            shards,
            opened_for: HashMap::new(),
            batches: HashMap::new(),
        }
    }
}

impl Streams {
    pub(crate) fn open(&mut self, source: SourceId, shards: impl IntoIterator<Item = i16>) {
        let set = shards.into_iter().fold(0, |set, shard| set | bit(shard));
        self.opened_for.insert(source, set);
    }

    pub(crate) fn is_open(&self, source: SourceId) -> bool {
        self.opened_for.contains_key(&source)
    }

    /// Forgets a stream and answers the shards of runs that it told and the claims it leaves without an answer.
    pub(crate) fn close(&mut self, source: SourceId) -> (Vec<i16>, Vec<AttemptId>) {
        let silent = self.silence(source);
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
        (silent, unanswered)
    }

    /// What a stream still tells about its shards no longer counts; answers of claims do.
    pub(crate) fn silence(&mut self, source: SourceId) -> Vec<i16> {
        self.opened_for.remove(&source);
        let mut silent = Vec::new();
        for (shard, told) in (0..).zip(&mut self.shards) {
            if told
                .coming
                .as_ref()
                .is_some_and(|(from, _)| *from == source)
            {
                told.coming = None;
            }
            if told.source == Some(source) {
                told.source = None;
                silent.push(shard);
            }
        }
        silent
    }

    pub(crate) fn shard(&mut self, shard: i16) -> Option<&mut Told> {
        self.shards.get_mut(usize::try_from(shard).ok()?)
    }

    /// The stream that a shard's claims go to.
    pub(crate) fn source_of(&self, shard: i16) -> Option<SourceId> {
        self.shards.get(usize::try_from(shard).ok()?)?.source
    }

    /// The whole of a shard was told on `source`.
    pub(crate) fn completed(&mut self, shard: i16, source: SourceId, epoch: u64) {
        let opened_for = self.opened_for.get(&source).copied().unwrap_or_default();
        if let Some(told) = self.shard(shard) {
            told.source = Some(source);
            told.epoch = epoch;
            told.complete_for |= opened_for;
        }
    }

    /// Whether every live attempt of an admission shard's tenants is known.
    pub(crate) fn all_told(&self, admission_shard: i16) -> bool {
        self.shards
            .iter()
            .all(|told| told.complete_for & bit(admission_shard) != 0)
    }

    /// What was known for an admission shard is worth nothing any more.
    pub(crate) fn forget(&mut self, admission_shard: i16) {
        for told in &mut self.shards {
            told.complete_for &= !bit(admission_shard);
        }
    }

    pub(crate) fn sent(&mut self, source: SourceId, number: u64, claims: Vec<AttemptId>) {
        self.batches.insert((source, number), claims);
    }

    pub(crate) fn answered(&mut self, source: SourceId, number: u64) -> Vec<AttemptId> {
        self.batches.remove(&(source, number)).unwrap_or_default()
    }

    /// Claims on this stream that have no answer yet.
    pub(crate) fn unanswered(&self, source: SourceId) -> usize {
        self.batches
            .keys()
            .filter(|(from, _)| *from == source)
            .count()
    }
}

fn bit(admission_shard: i16) -> ShardSet {
    1_u16
        .checked_shl(u32::try_from(admission_shard).unwrap_or(u32::MAX))
        .unwrap_or_default()
}
