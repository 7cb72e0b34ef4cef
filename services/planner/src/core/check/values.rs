//! Checks of single values that occur in many fields.

use prost_types::Duration;
use servo_model::Digest;
use servo_model::limits::MANIFEST_TIME_MAX;

use super::Faults;

/// Limit for names of pools, checks, sets, schedules and the like.
pub(super) const NAME_BYTES_MAX: usize = 128;
/// Limit for text that people read.
pub(super) const PROSE_BYTES_MAX: usize = 16 * 1024;
pub(super) const CRON_FIELDS: usize = 5;
const DURATION_SECONDS_MAX: i64 = MANIFEST_TIME_MAX.as_secs().cast_signed();

/// A short text that must not be empty.
pub(super) fn name(faults: &mut Faults, path: impl Into<String>, text: &str) {
    if text.is_empty() {
        faults.add(path, "is empty; give it a name");
    } else {
        short(faults, path, text, NAME_BYTES_MAX);
    }
}

pub(super) fn short(faults: &mut Faults, path: impl Into<String>, text: &str, bytes_max: usize) {
    if text.len() > bytes_max {
        faults.add(
            path,
            format!("has {} bytes; at most {bytes_max} are allowed", text.len()),
        );
    } else if text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        faults.add(path, "holds a control character; remove it");
    }
}

/// Must be neither negative nor too long; zero only where `zero_is_fine`.
pub(super) fn duration(
    faults: &mut Faults,
    path: &str,
    duration: Option<Duration>,
    zero_is_fine: bool,
) {
    let Some(Duration { seconds, nanos }) = duration else {
        return;
    };
    if !(0..=DURATION_SECONDS_MAX).contains(&seconds) || !(0..=999_999_999).contains(&nanos) {
        faults.add(
            path,
            "is negative or longer than a year; write a time between",
        );
    } else if seconds == 0 && nanos == 0 && !zero_is_fine {
        faults.add(path, "is zero; write a time or leave it out");
    }
}

pub(super) fn digest(faults: &mut Faults, path: &str, text: &str) {
    if let Err(error) = text.parse::<Digest>() {
        faults.add(path, error.to_string());
    }
}

/// Any JSON, including floats, because user configuration is passed on unchanged.
pub(super) fn config(faults: &mut Faults, path: &str, text: &str) {
    if let Err(sentence) = crate::core::settings::check_config(text) {
        faults.add(path, sentence);
    }
}

/// Checks for five fields of valid cron characters; the automation service interprets them.
pub(super) fn cron(faults: &mut Faults, path: &str, text: &str) {
    let known = |c: char| c.is_ascii_alphanumeric() || "*/,-?L#".contains(c);
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != CRON_FIELDS
        || !fields.iter().all(|field| field.chars().all(known))
        || text.len() > NAME_BYTES_MAX
    {
        faults.add(
            path,
            "is not a cron expression of five fields: write minute, hour, day, month and weekday, such as `0 6 * * 1`",
        );
    }
}

pub(super) fn zone(faults: &mut Faults, path: &str, text: &str) {
    if let Err(sentence) = servo_model::grid::find_zone(text) {
        faults.add(path, sentence);
    }
}

/// An enum whose number must be a known value.
pub(super) fn listed<E: TryFrom<i32>>(faults: &mut Faults, path: &str, number: i32) {
    if E::try_from(number).is_err() {
        faults.add(path, format!("{number} is not in the list of this field"));
    }
}
