//! Addresses in the ledger: the shard of a stream, the position in a shard, and the epoch of the
//! lease under which a shard is written.

use std::fmt;

use crate::event::Stream;
use crate::hash::Digest;

/// The number of shards of the stream that has most.
const SHARDS_MAX: i16 = Stream::Execution.shard_count();

/// A shard of a stream. Only valid together with its stream, because streams have different
/// numbers of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(i16);

impl ShardId {
    /// The shard with this number, if any stream has so many.
    pub const fn new(number: i16) -> Option<ShardId> {
        if 0 <= number && number < SHARDS_MAX {
            Some(ShardId(number))
        } else {
            None
        }
    }

    /// The number, as rows store it.
    pub const fn get(self) -> i16 {
        self.0
    }

    /// The number, as an index into a table of shards.
    pub fn index(self) -> usize {
        usize::from(self.0.unsigned_abs())
    }

    pub(crate) const fn of_first_byte(stream: Stream, byte: u8) -> ShardId {
        ShardId(byte as i16 % stream.shard_count())
    }
}

impl From<ShardId> for u32 {
    fn from(shard: ShardId) -> u32 {
        u32::from(shard.0.unsigned_abs())
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Stream {
    /// All shards of this stream.
    pub fn shards(self) -> impl DoubleEndedIterator<Item = ShardId> + Clone {
        (0..self.shard_count()).map(ShardId)
    }

    /// The shard with this number, if the stream has it.
    pub fn shard(self, number: u32) -> Option<ShardId> {
        let number = i16::try_from(number).ok()?;
        (number < self.shard_count()).then_some(ShardId(number))
    }

    /// Whether the shard is one of this stream's.
    pub fn has_shard(self, shard: ShardId) -> bool {
        shard.0 < self.shard_count()
    }

    /// The shard of everything that has this hash.
    pub fn shard_of(self, hash: &Digest) -> ShardId {
        ShardId::of_first_byte(self, hash.as_bytes()[0])
    }
}

/// A shard of the dispatch stream: its holder admits the tasks of the tenants in it. A type of its
/// own, because most code that handles it handles shards of the execution stream as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdmissionShard(ShardId);

impl AdmissionShard {
    /// The shard of events that are for all tenants.
    pub const OF_ALL_TENANTS: AdmissionShard = AdmissionShard(ShardId(0));

    /// The admission shard with this number, if there is one.
    pub fn new(number: u32) -> Option<AdmissionShard> {
        Stream::Dispatch.shard(number).map(AdmissionShard)
    }

    /// The admission shard that a lease on the dispatch stream is for.
    pub fn of_dispatch(shard: ShardId) -> Option<AdmissionShard> {
        Stream::Dispatch
            .has_shard(shard)
            .then_some(AdmissionShard(shard))
    }

    pub(crate) fn of_hash(hash: &Digest) -> AdmissionShard {
        AdmissionShard(Stream::Dispatch.shard_of(hash))
    }

    pub fn all() -> impl DoubleEndedIterator<Item = AdmissionShard> + Clone {
        Stream::Dispatch.shards().map(AdmissionShard)
    }

    /// The number, as an index into a table of admission shards.
    pub fn index(self) -> usize {
        self.0.index()
    }
}

impl From<AdmissionShard> for ShardId {
    fn from(shard: AdmissionShard) -> ShardId {
        shard.0
    }
}

impl From<AdmissionShard> for u32 {
    fn from(shard: AdmissionShard) -> u32 {
        shard.0.into()
    }
}

impl fmt::Display for AdmissionShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts the holders of a shard: each lease has a higher epoch than the one before it, so the
/// messages of two holders can be told apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch of a shard that was never leased.
    pub const NEVER: Epoch = Epoch(0);

    pub const fn new(number: u64) -> Epoch {
        Epoch(number)
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    pub const fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The position of an event in its shard, counted from 1 without gaps. As a watermark or a head it
/// is the position of the last event, and [`Position::START`] when there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(i64);

impl Position {
    /// Before the first event.
    pub const START: Position = Position(0);
    /// After every event.
    pub const MAX: Position = Position(i64::MAX);

    /// `None` for negative numbers.
    pub const fn new(number: i64) -> Option<Position> {
        if 0 <= number {
            Some(Position(number))
        } else {
            None
        }
    }

    pub const fn get(self) -> i64 {
        self.0
    }

    pub const fn next(self) -> Position {
        self.plus(1)
    }

    pub const fn plus(self, events: u32) -> Position {
        Position(self.0.saturating_add(events as i64))
    }

    /// The number of events after `earlier` up to this position; 0 when it is not earlier.
    pub const fn events_since(self, earlier: Position) -> u64 {
        let events = self.0 - earlier.0;
        if events > 0 { events.unsigned_abs() } else { 0 }
    }
}

impl From<Position> for u64 {
    fn from(position: Position) -> u64 {
        position.0.unsigned_abs()
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_its_shards_and_no_others() {
        assert_eq!(Stream::Quota.shards().count(), 4);
        assert_eq!(Stream::Quota.shard(3).map(ShardId::get), Some(3));
        assert_eq!(Stream::Quota.shard(4), None);
        assert_eq!(Stream::Execution.shard(u32::MAX), None);
        assert_eq!(ShardId::new(-1), None);
        assert_eq!(ShardId::new(64), None);
        assert!(!Stream::Dispatch.has_shard(ShardId(16)));
        assert_eq!(AdmissionShard::of_dispatch(ShardId(16)), None);
        assert_eq!(AdmissionShard::all().count(), 16);
    }

    #[test]
    fn positions_count_events() {
        let third = Position::START.plus(3);
        assert_eq!(third, Position::START.next().next().next());
        assert_eq!(third.events_since(Position::START), 3);
        assert_eq!(Position::START.events_since(third), 0);
        assert_eq!(Position::new(-1), None);
    }
}
