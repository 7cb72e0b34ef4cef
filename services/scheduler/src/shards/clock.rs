//! The database's time, estimated locally.

use std::time::Instant;

use servo_store::Timestamp;

/// A fold needs the time before the statement that records it, so the last known database time is
/// advanced by the local monotonic clock. The statement refuses a time that is off by more than a
/// second.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatabaseClock {
    known: i64,
    since: Instant,
}

impl DatabaseClock {
    pub(super) fn at(now: Timestamp) -> DatabaseClock {
        DatabaseClock {
            known: now.unix_us(),
            since: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> i64 {
        self.known
            .saturating_add(i64::try_from(self.since.elapsed().as_micros()).unwrap_or(i64::MAX))
    }

    /// The local instant of a database time.
    pub(super) fn instant(&self, time: i64) -> Instant {
        let wait = u64::try_from(time.saturating_sub(self.now())).unwrap_or(0);
        Instant::now() + std::time::Duration::from_micros(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f31_time_follows_the_database_not_the_local_date() {
        for database in [0, 4_102_444_800_000_000] {
            let clock = DatabaseClock::at(Timestamp::from_unix_us(database));
            let (first, second) = (clock.now(), clock.now());
            assert!(
                database <= first && first <= second,
                "time advances from the database's time"
            );
            assert!(
                second - database < 3_600_000_000,
                "the local date is not used"
            );
            assert!(
                clock.instant(database) <= Instant::now(),
                "a past time is due at once"
            );
        }
    }
}
