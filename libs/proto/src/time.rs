//! Times as messages have them.

use std::time::Duration;

use prost_types::{Duration as ProtoDuration, Timestamp as ProtoTimestamp};
use servo_model::Timestamp;

pub fn proto_time(time: Timestamp) -> ProtoTimestamp {
    ProtoTimestamp {
        seconds: time.unix_seconds(),
        nanos: time.subsecond_nanos(),
    }
}

/// The time in a message, in microseconds; a part of a microsecond is dropped. `None` when its
/// nanoseconds are not a part of a second or it is beyond what a [`Timestamp`] can hold.
pub fn from_proto_time(time: &ProtoTimestamp) -> Option<Timestamp> {
    let nanos = u32::try_from(time.nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000)?;
    let us = time.seconds.checked_mul(1_000_000)?;
    us.checked_add(i64::from(nanos / 1_000))
        .map(Timestamp::from_unix_us)
}

/// The duration in a message. `None` when it is negative or its nanoseconds are not a part of a
/// second. (The conversion of prost-types overflows for the smallest number of seconds.)
pub fn from_proto_duration(duration: &ProtoDuration) -> Option<Duration> {
    let seconds = u64::try_from(duration.seconds).ok()?;
    let nanos = u32::try_from(duration.nanos).ok()?;
    (nanos < 1_000_000_000).then(|| Duration::new(seconds, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_microseconds() {
        for us in [0, 1, -1, 1_767_225_600_123_456] {
            let time = Timestamp::from_unix_us(us);
            assert_eq!(from_proto_time(&proto_time(time)), Some(time));
        }
    }

    #[test]
    fn durations_out_of_range_are_none() {
        let check = |seconds, nanos| from_proto_duration(&ProtoDuration { seconds, nanos });
        assert_eq!(check(1, 5), Some(Duration::new(1, 5)));
        for (seconds, nanos) in [
            (-1, 0),
            (i64::MIN, 0),
            (0, -1),
            (0, i32::MIN),
            (0, 1_000_000_000),
        ] {
            assert_eq!(check(seconds, nanos), None);
        }
    }

    #[test]
    fn times_out_of_range_are_none() {
        let check = |seconds, nanos| from_proto_time(&ProtoTimestamp { seconds, nanos });
        assert_eq!(check(0, -1), None);
        assert_eq!(check(0, 1_000_000_000), None);
        assert_eq!(check(i64::MAX, 0), None);
        assert_eq!(
            check(0, 999_999_999),
            Some(Timestamp::from_unix_us(999_999))
        );
    }
}
