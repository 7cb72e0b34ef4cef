//! Deadlines of incoming calls.
//!
//! A unary call must have a deadline; a longer one than the configured maximum is reduced to it. A
//! response stream (watching, pulling) may live as long as its reader: its deadline is optional and
//! not reduced, because keep-alive detects dead readers. Health and reflection need no deadline,
//! because probes and people call them without one. On a public exposure a missing deadline becomes
//! the maximum.

use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;

use crate::error::{Error, Reason};
use crate::tls::Exposure;

pub(crate) const GRPC_TIMEOUT: &str = "grpc-timeout";
const DIGITS_MAX: usize = 8;

/// How long a caller may wait for the kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Unary,
    Stream,
    /// Health and reflection.
    Unlimited,
}

pub(super) fn deadline(
    headers: &HeaderMap,
    wait: Wait,
    exposure: Exposure,
    longest: Duration,
    now: Instant,
) -> Result<Option<Instant>, Error> {
    let requested = requested_timeout(headers)?;
    let timeout = match (wait, requested) {
        (Wait::Unary, Some(timeout)) => Some(timeout.min(longest)),
        (Wait::Unary, None) if exposure == Exposure::Mesh => return Err(required()),
        (Wait::Unary, None) => Some(longest),
        (Wait::Stream | Wait::Unlimited, requested) => requested,
    };
    Ok(timeout.and_then(|timeout| now.checked_add(timeout)))
}

pub(super) fn exceeded() -> Error {
    Error::new(
        Reason::DeadlineExceeded,
        "the call's deadline passed before it was answered",
    )
}

fn requested_timeout(headers: &HeaderMap) -> Result<Option<Duration>, Error> {
    let Some(value) = headers.get(GRPC_TIMEOUT) else {
        return Ok(None);
    };
    let parsed = value.to_str().ok().and_then(parse);
    let unreadable = || {
        let message = format!("{GRPC_TIMEOUT} is up to eight digits and one of H, M, S, m, u, n");
        Error::new(Reason::InvalidField, message)
    };
    parsed.map(Some).ok_or_else(unreadable)
}

fn required() -> Error {
    let message = "the call has no deadline; set one (grpc-timeout), so that the service can stop abandoned work";
    Error::new(Reason::DeadlineRequired, message)
}

pub(crate) fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > DIGITS_MAX || !digits.bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

/// Formats a timeout in the finest unit that fits into eight digits.
pub(crate) fn format(timeout: Duration) -> String {
    let most = 10_u128.pow(DIGITS_MAX as u32);
    let units = [
        ("n", timeout.as_nanos()),
        ("u", timeout.as_micros()),
        ("m", timeout.as_millis()),
    ];
    let fine = units.into_iter().find(|(_, count)| *count < most);
    let (unit, count) = fine.unwrap_or(("S", u128::from(timeout.as_secs()).min(most - 1)));
    format!("{count}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_in_every_unit() {
        let check = |text, expected| assert_eq!(parse(text), expected, "{text}");
        check("1H", Some(Duration::from_secs(3600)));
        check("2M", Some(Duration::from_secs(120)));
        check("3S", Some(Duration::from_secs(3)));
        check("4m", Some(Duration::from_millis(4)));
        check("5u", Some(Duration::from_micros(5)));
        check("6n", Some(Duration::from_nanos(6)));
        check("99999999H", Some(Duration::from_secs(99_999_999 * 3600)));
        for wrong in [
            "",
            "S",
            "5",
            "5s",
            "+5S",
            "123456789S",
            "-1S",
            "1.5S",
            "5 S",
            "5é",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn sent_timeout_is_never_longer_than_the_time_left() {
        for nanos in [
            0,
            1,
            99_999_999,
            100_000_000,
            99_999_999_999,
            123_456_789_012_345,
        ] {
            let left = Duration::from_nanos(nanos);
            let sent = parse(&format(left)).unwrap();
            assert!(
                sent <= left && left - sent <= left / 1000,
                "{left:?} was sent as {sent:?}"
            );
        }
    }

    #[test]
    fn unary_call_needs_a_deadline_that_is_capped() {
        let now = Instant::now();
        let longest = Duration::from_secs(10);
        let check = |header: Option<&'static str>,
                     wait,
                     exposure,
                     expected: Result<Option<u64>, Reason>| {
            let mut headers = HeaderMap::new();
            header.map(|value| headers.insert(GRPC_TIMEOUT, value.parse().unwrap()));
            let found =
                deadline(&headers, wait, exposure, longest, now).map_err(|error| error.reason());
            assert_eq!(
                found,
                expected.map(|s| s.map(|s| now + Duration::from_secs(s))),
                "{header:?} {wait:?} {exposure:?}"
            );
        };
        check(Some("5S"), Wait::Unary, Exposure::Mesh, Ok(Some(5)));
        check(Some("50S"), Wait::Unary, Exposure::Mesh, Ok(Some(10)));
        check(
            None,
            Wait::Unary,
            Exposure::Mesh,
            Err(Reason::DeadlineRequired),
        );
        check(None, Wait::Unary, Exposure::Public, Ok(Some(10)));
        check(Some("50S"), Wait::Stream, Exposure::Mesh, Ok(Some(50)));
        check(None, Wait::Stream, Exposure::Mesh, Ok(None));
        check(None, Wait::Unlimited, Exposure::Mesh, Ok(None));
        check(
            Some("soon"),
            Wait::Stream,
            Exposure::Mesh,
            Err(Reason::InvalidField),
        );
    }
}
