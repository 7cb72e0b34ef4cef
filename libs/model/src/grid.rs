//! A time dimension as a grid of periods of equal grain in a time zone.
//!
//! A period is identified by its place, counted from the first period of the grid; its value in
//! keys is a date or, for hours, a UTC instant. Days, weeks and months begin at local midnight, so
//! a day may have 23 or 25 hours; hours are always 60 minutes long. The time zone rules are
//! compiled in, so that every process counts alike.

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::LazyLock;

use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Span, Timestamp};

use crate::coded_enum::coded_enum;
use crate::partition::{PartitionValue, ValueKind};
use crate::text::excerpt;

const HOUR_SECONDS: i64 = 3600;
const WEEK_DAYS: i64 = 7;

coded_enum! {
    /// The length of a period.
    Grain {
        /// Keys are UTC instants.
        Hour = 1, "HOUR";
        /// Keys are dates.
        Day = 2, "DAY";
        /// Keys are the dates on which weeks begin.
        Week = 3, "WEEK";
        /// Keys are the first dates of months.
        Month = 4, "MONTH";
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeGrid {
    grain: Grain,
    zone: TimeZone,
    first: First,
    /// How many periods there are, if the grid ends.
    count: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Instant(Timestamp),
    Date(Date),
}

/// An invalid grid, with the field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {sentence}")]
pub struct GridError {
    pub field: &'static str,
    pub sentence: String,
}

/// Why a value is not a period of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridMismatch {
    /// The value has another type, or lies between two beginnings.
    NotABeginning,
    BeforeStart,
    AfterEnd,
    /// The time zone skipped that day.
    SkippedByZone,
}

impl TimeGrid {
    /// An empty zone means UTC; an empty `end` means that the grid does not end.
    pub fn new(grain: Grain, zone: &str, start: &str, end: &str) -> Result<TimeGrid, GridError> {
        let zone = find_zone(zone).map_err(|sentence| GridError {
            field: "time_zone",
            sentence,
        })?;
        let first = parse_first(grain, start).map_err(|sentence| GridError {
            field: "start",
            sentence,
        })?;
        let mut grid = TimeGrid {
            grain,
            zone,
            first,
            count: None,
        };
        if !end.is_empty() {
            grid.count = Some(grid.count_until(end).map_err(|sentence| GridError {
                field: "end",
                sentence,
            })?);
        }
        Ok(grid)
    }

    pub fn grain(&self) -> Grain {
        self.grain
    }

    /// The type of the values in its keys.
    pub fn kind(&self) -> ValueKind {
        match self.grain {
            Grain::Hour => ValueKind::Instant,
            Grain::Day | Grain::Week | Grain::Month => ValueKind::Date,
        }
    }

    /// Whether a period of one grid is always a period of the other, wherever the two begin and
    /// end.
    pub fn has_same_periods_as(&self, other: &TimeGrid) -> bool {
        let first = other.value(0);
        let zones_agree = self.grain == Grain::Hour || self.zone == other.zone;
        self.grain == other.grain
            && zones_agree
            && first.is_some_and(|first| self.place_of_beginning(&first).is_some())
    }

    /// How many periods there are, if the grid ends.
    pub fn count(&self) -> Option<i64> {
        self.count
    }

    /// The value at a place, whether or not the grid reaches that far.
    pub fn value(&self, place: i64) -> Option<PartitionValue> {
        match self.first {
            First::Instant(first) => Some(PartitionValue::Instant(hours_after(first, place)?)),
            First::Date(_) => Some(PartitionValue::Date(self.date(place)?)),
        }
    }

    /// The place of a value that is one of the grid's periods.
    pub fn place(&self, value: &PartitionValue) -> Result<i64, GridMismatch> {
        let place = self
            .place_of_beginning(value)
            .ok_or(GridMismatch::NotABeginning)?;
        if place < 0 {
            return Err(GridMismatch::BeforeStart);
        }
        if self.count.is_some_and(|count| place >= count) {
            return Err(GridMismatch::AfterEnd);
        }
        if self.exists_in_zone(place) {
            Ok(place)
        } else {
            Err(GridMismatch::SkippedByZone)
        }
    }

    /// The period from its beginning to the beginning of the next one.
    pub fn span(&self, place: i64) -> Option<Range<Timestamp>> {
        Some(self.beginning(place)?..self.beginning(place.checked_add(1)?)?)
    }

    /// False for a day that the time zone skipped.
    pub fn exists_in_zone(&self, place: i64) -> bool {
        self.span(place).is_some_and(|span| span.start < span.end)
    }

    /// The places of the periods that have ended at `now`.
    pub fn ended(&self, now: Timestamp) -> Range<i64> {
        let under_way = self.place_at(now).max(0);
        0..self.count.map_or(under_way, |count| under_way.min(count))
    }

    /// The places of the periods that overlap `span`, including places outside the grid.
    pub fn overlapping(&self, span: &Range<Timestamp>) -> Range<i64> {
        let last = span
            .end
            .checked_sub(SignedDuration::from_nanos(1))
            .unwrap_or(span.end);
        self.place_at(span.start)..self.place_at(last) + 1
    }

    /// Limits the range to the places that the grid has.
    pub fn clamp(&self, places: Range<i64>) -> Range<i64> {
        let end = self.count.map_or(places.end, |count| places.end.min(count));
        places.start.max(0)..end
    }

    /// The place of the period that contains an instant.
    fn place_at(&self, at: Timestamp) -> i64 {
        match self.first {
            First::Instant(first) => {
                let nanos = at.as_nanosecond() - first.as_nanosecond();
                let hours = nanos.div_euclid(i128::from(HOUR_SECONDS) * 1_000_000_000);
                i64::try_from(hours).unwrap_or(i64::MAX)
            }
            First::Date(first) => self.places_between(first, self.zone.to_datetime(at).date()),
        }
    }

    fn place_of_beginning(&self, value: &PartitionValue) -> Option<i64> {
        match (self.first, value) {
            (First::Instant(first), PartitionValue::Instant(at)) => {
                let seconds = at.duration_since(first).as_secs();
                (seconds % HOUR_SECONDS == 0).then_some(seconds / HOUR_SECONDS)
            }
            (First::Date(first), PartitionValue::Date(date)) => {
                let place = self.places_between(first, *date);
                (self.date(place) == Some(*date)).then_some(place)
            }
            _ => None,
        }
    }

    fn beginning(&self, place: i64) -> Option<Timestamp> {
        match self.first {
            First::Instant(first) => hours_after(first, place),
            First::Date(_) => {
                let midnight = self.date(place)?.at(0, 0, 0, 0);
                self.zone.to_ambiguous_timestamp(midnight).compatible().ok()
            }
        }
    }

    /// Only for grids of dates.
    fn date(&self, place: i64) -> Option<Date> {
        let First::Date(first) = self.first else {
            return None;
        };
        let span = match self.grain {
            Grain::Month => Span::new().try_months(place),
            Grain::Week => Span::new().try_days(place.checked_mul(WEEK_DAYS)?),
            Grain::Day | Grain::Hour => Span::new().try_days(place),
        };
        first.checked_add(span.ok()?).ok()
    }

    /// The number of whole periods between the first one and a date, rounded down.
    fn places_between(&self, first: Date, date: Date) -> i64 {
        let days = || date.duration_since(first).as_hours() / 24;
        match self.grain {
            Grain::Month => months(date) - months(first),
            Grain::Week => days().div_euclid(WEEK_DAYS),
            Grain::Day | Grain::Hour => days(),
        }
    }

    /// How many periods begin before `end`.
    fn count_until(&self, end: &str) -> Result<i64, String> {
        let end = PartitionValue::from_text(self.kind(), end).map_err(|fault| fault.to_string())?;
        let count = match (self.first, &end) {
            (First::Instant(first), PartitionValue::Instant(at)) => {
                let seconds = at.duration_since(first).as_secs();
                seconds.div_euclid(HOUR_SECONDS) + i64::from(seconds % HOUR_SECONDS != 0)
            }
            (First::Date(first), PartitionValue::Date(date)) => {
                let place = self.places_between(first, *date);
                place + i64::from(self.date(place).is_some_and(|beginning| beginning < *date))
            }
            _ => 0,
        };
        if count > 0 {
            Ok(count)
        } else {
            Err("lies at or before the start; write a later one or leave it out".to_owned())
        }
    }
}

/// Finds a time zone by its IANA name in the compiled rules; an empty name is UTC.
pub fn find_zone(name: &str) -> Result<TimeZone, String> {
    static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    if name.is_empty() {
        return Ok(TimeZone::UTC);
    }
    let zone = ZONES
        .get(name)
        .ok()
        .filter(|zone| zone.iana_name() == Some(name));
    zone.ok_or_else(|| {
        format!(
            "`{}` is not an IANA time zone; write one such as `Europe/Berlin` or `UTC`",
            excerpt(name)
        )
    })
}

fn parse_first(grain: Grain, start: &str) -> Result<First, String> {
    let kind = if grain == Grain::Hour {
        ValueKind::Instant
    } else {
        ValueKind::Date
    };
    match PartitionValue::from_text(kind, start).map_err(|fault| fault.to_string())? {
        PartitionValue::Instant(at) => Ok(First::Instant(at)),
        PartitionValue::Date(date) if grain == Grain::Month && date.day() != 1 => Err(format!(
            "`{date}` is not the first of a month; months begin there, write {}",
            date.first_of_month()
        )),
        PartitionValue::Date(date) => Ok(First::Date(date)),
        _ => Err("is neither a date nor an instant".to_owned()),
    }
}

fn hours_after(first: Timestamp, hours: i64) -> Option<Timestamp> {
    first
        .checked_add(SignedDuration::from_secs(hours.checked_mul(HOUR_SECONDS)?))
        .ok()
}

fn months(date: Date) -> i64 {
    i64::from(date.year()) * 12 + i64::from(date.month())
}
