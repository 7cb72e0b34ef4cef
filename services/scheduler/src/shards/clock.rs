//! The database's time, estimated locally.

use std::time::Instant;

use servo_model::{ShardId, Timestamp};
use servo_store::StoreError;

use super::lane::Lane;
use crate::store::shards;

/// A fold needs the time before the statement that records it, so the last known database time is
/// advanced by the local monotonic clock. The statement refuses a time that is off by more than a
/// second.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatabaseClock {
    known: Timestamp,
    since: Instant,
}

impl DatabaseClock {
    pub(super) fn at(now: Timestamp) -> DatabaseClock {
        DatabaseClock {
            known: now,
            since: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.known.plus(self.since.elapsed())
    }

    /// The local instant of a database time.
    pub(super) fn instant(&self, time: Timestamp) -> Instant {
        Instant::now() + time.since(self.now())
    }
}

impl Lane {
    /// The time of a flush: the database's time, and not before the last event of its shards.
    pub(super) async fn time_for(
        &mut self,
        shards: impl Iterator<Item = ShardId>,
    ) -> Result<Timestamp, StoreError> {
        let clock = match self.clock {
            Some(clock) => clock,
            None => self.read_clock().await?,
        };
        let recorded = shards
            .filter_map(|shard| Some(self.shards.get(&shard)?.recorded_at))
            .max();
        Ok(clock.now().max(recorded.unwrap_or(Timestamp::UNIX_EPOCH)))
    }

    pub(super) async fn read_clock(&mut self) -> Result<DatabaseClock, StoreError> {
        let now = shards::now(&self.loops).await?;
        let clock = DatabaseClock::at(now.unwrap_or(Timestamp::UNIX_EPOCH));
        Ok(*self.clock.insert(clock))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn f31_time_follows_the_database_not_the_local_date() {
        for database in [0, 4_102_444_800].map(Timestamp::from_unix_seconds) {
            let clock = DatabaseClock::at(database);
            let (first, second) = (clock.now(), clock.now());
            assert!(
                database <= first && first <= second,
                "time advances from the database's time"
            );
            assert!(
                second.since(database) < Duration::from_secs(3_600),
                "the local date is not used"
            );
            assert!(
                clock.instant(database) <= Instant::now(),
                "a past time is due at once"
            );
        }
    }
}
