//! The time type of all services.

use std::fmt;
use std::time::{Duration, SystemTime};

const US_PER_SECOND: i64 = 1_000_000;

/// A time in microseconds since 1970-01-01T00:00:00Z: the resolution in which Postgres stores
/// times, so that a time is the same before and after it was stored. Arithmetic saturates.
///
/// Calendars are jiff's: [`Timestamp::to_jiff`] leads there and `From` leads back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const UNIX_EPOCH: Timestamp = Timestamp(0);
    pub const MAX: Timestamp = Timestamp(i64::MAX);

    pub const fn from_unix_us(us: i64) -> Timestamp {
        Timestamp(us)
    }

    pub const fn unix_us(self) -> i64 {
        self.0
    }

    pub const fn from_unix_seconds(seconds: i64) -> Timestamp {
        Timestamp(seconds.saturating_mul(US_PER_SECOND))
    }

    /// Whole seconds, rounded down.
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(US_PER_SECOND)
    }

    /// Whole milliseconds, rounded down; 0 before 1970. The resolution of ULIDs.
    pub const fn unix_ms(self) -> u64 {
        if self.0 < 0 {
            0
        } else {
            self.0.unsigned_abs() / 1_000
        }
    }

    /// The microseconds after [`Timestamp::unix_seconds`], as nanoseconds.
    pub const fn subsecond_nanos(self) -> i32 {
        (self.0.rem_euclid(US_PER_SECOND) * 1_000) as i32
    }

    pub const fn plus_us(self, us: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(us))
    }

    /// The microseconds since `earlier`; negative when it is later.
    pub const fn us_since(self, earlier: Timestamp) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    pub fn plus(self, duration: Duration) -> Timestamp {
        self.plus_us(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
    }

    pub fn minus(self, duration: Duration) -> Timestamp {
        let us = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_sub(us))
    }

    /// The time since `earlier`; zero when it is later.
    pub const fn since(self, earlier: Timestamp) -> Duration {
        let us = self.us_since(earlier);
        Duration::from_micros(if us < 0 { 0 } else { us.unsigned_abs() })
    }

    /// The nearest time that jiff can represent, which ends with the year 9999.
    pub fn to_jiff(self) -> jiff::Timestamp {
        let nearest = if self.0 < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        };
        jiff::Timestamp::from_microsecond(self.0).unwrap_or(nearest)
    }
}

impl From<jiff::Timestamp> for Timestamp {
    fn from(time: jiff::Timestamp) -> Timestamp {
        Timestamp(time.as_microsecond())
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Timestamp {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Timestamp::UNIX_EPOCH.plus(since),
            Err(before) => Timestamp::UNIX_EPOCH.minus(before.duration()),
        }
    }
}

/// As in RFC 3339.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_jiff().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_time_before_1970_are_rounded_down() {
        let time = Timestamp::from_unix_us(-1);
        assert_eq!(
            (time.unix_seconds(), time.subsecond_nanos()),
            (-1, 999_999_000)
        );
        assert_eq!(time.unix_ms(), 0);
        assert_eq!(time.to_string(), "1969-12-31T23:59:59.999999Z");
    }

    #[test]
    fn arithmetic_saturates() {
        let time = Timestamp::from_unix_seconds(7);
        assert_eq!(time.plus(Duration::MAX), Timestamp::MAX);
        assert_eq!(time.plus_us(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX.to_jiff(), jiff::Timestamp::MAX);
        assert_eq!(Timestamp::UNIX_EPOCH.since(time), Duration::ZERO);
        assert_eq!(time.since(Timestamp::UNIX_EPOCH), Duration::from_secs(7));
        assert_eq!(time.minus(Duration::from_secs(7)), Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn conversions_keep_the_time() {
        let time = Timestamp::from_unix_us(1_767_225_600_123_456);
        assert_eq!(Timestamp::from(time.to_jiff()), time);
        let system = SystemTime::UNIX_EPOCH + Duration::from_micros(1_767_225_600_123_456);
        assert_eq!(Timestamp::from(system), time);
    }
}
