//! The database's time, as well as one can know it from here.

use std::time::Instant;

use servo_store::Timestamp;

/// Folds need the time before the statement that records it, so it is kept as an offset to a clock that only goes
/// forward. The statement refuses a time that is off by more than a second.
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

    /// When a moment of the database comes, on the local clock.
    pub(super) fn instant(&self, time: i64) -> Instant {
        let wait = u64::try_from(time.saturating_sub(self.now())).unwrap_or(0);
        Instant::now() + std::time::Duration::from_micros(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f31_time_is_the_databases_whatever_the_local_clock_shows() {
        for database in [0, 4_102_444_800_000_000] {
            let clock = DatabaseClock::at(Timestamp::from_unix_us(database));
            let (first, second) = (clock.now(), clock.now());
            assert!(
                database <= first && first <= second,
                "it goes forward from what the database said"
            );
            assert!(
                second - database < 3_600_000_000,
                "and knows nothing of the local date"
            );
            assert!(
                clock.instant(database) <= Instant::now(),
                "what is past is due at once"
            );
        }
    }
}
