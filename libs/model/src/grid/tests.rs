use proptest::prelude::*;

use super::*;

fn grid(grain: Grain, zone: &str, start: &str, end: &str) -> TimeGrid {
    TimeGrid::new(grain, zone, start, end).unwrap()
}

fn date(text: &str) -> PartitionValue {
    PartitionValue::from_text(ValueKind::Date, text).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// How many hours of a UTC grid lie in one day of a zone.
fn hours_of(zone: &str, day: &str) -> i64 {
    let days = grid(Grain::Day, zone, "2000-01-01", "");
    let hours = grid(Grain::Hour, "UTC", "1999-12-01T00:00:00Z", "");
    let span = days.span(days.place(&date(day)).unwrap()).unwrap();
    let places = hours.overlapping(&span);
    places.end - places.start
}

#[test]
fn days_have_23_to_25_hours_at_clock_changes() {
    assert_eq!(hours_of("Europe/Berlin", "2026-03-28"), 24);
    assert_eq!(hours_of("Europe/Berlin", "2026-03-29"), 23);
    assert_eq!(hours_of("Europe/Berlin", "2026-10-25"), 25);
    assert_eq!(hours_of("America/New_York", "2026-03-08"), 23);
    assert_eq!(hours_of("America/New_York", "2026-11-01"), 25);
    // Midnight itself is skipped or occurs twice.
    assert_eq!(hours_of("America/Sao_Paulo", "2018-11-04"), 23);
    assert_eq!(hours_of("America/Havana", "2026-11-01"), 25);
}

#[test]
fn day_skipped_by_the_zone_is_not_a_period() {
    let days = grid(Grain::Day, "Pacific/Apia", "2011-12-28", "2012-01-02");
    let missing = days.place(&date("2011-12-30"));
    assert_eq!(missing, Err(GridMismatch::SkippedByZone));
    let real = (0..days.count().unwrap())
        .filter(|place| days.exists_in_zone(*place))
        .count();
    assert_eq!(real, 4);
}

#[test]
fn weeks_begin_on_the_first_ones_weekday_and_months_on_the_first() {
    let weeks = grid(Grain::Week, "", "2026-01-05", "");
    assert_eq!(weeks.value(2), Some(date("2026-01-19")));
    assert_eq!(
        weeks.place(&date("2026-01-20")),
        Err(GridMismatch::NotABeginning)
    );
    let months = grid(Grain::Month, "", "2026-01-01", "");
    assert_eq!(months.value(13), Some(date("2027-02-01")));
    assert_eq!(months.place(&date("2027-02-01")), Ok(13));
    assert_eq!(
        months.place(&date("2027-02-02")),
        Err(GridMismatch::NotABeginning)
    );
}

#[test]
fn period_ends_when_the_next_one_begins() {
    let days = grid(Grain::Day, "Europe/Berlin", "2026-01-01", "2026-01-04");
    assert_eq!(days.ended(at("2025-06-01T00:00:00Z")), 0..0);
    assert_eq!(days.ended(at("2026-01-01T22:59:59.999Z")), 0..0);
    assert_eq!(days.ended(at("2026-01-01T23:00:00Z")), 0..1);
    assert_eq!(days.ended(at("2030-01-01T00:00:00Z")), 0..3);
    let hours = grid(Grain::Hour, "", "2026-01-01T00:30:00Z", "");
    assert_eq!(hours.ended(at("2026-01-01T02:29:59.5Z")), 0..1);
    assert_eq!(hours.ended(at("2026-01-01T00:29:59.5Z")), 0..0);
}

#[test]
fn end_excludes_periods_that_begin_at_or_after_it() {
    let count = |grain, start, end| grid(grain, "", start, end).count();
    assert_eq!(count(Grain::Day, "2026-01-01", "2026-01-02"), Some(1));
    assert_eq!(count(Grain::Week, "2026-01-01", "2026-01-08"), Some(1));
    assert_eq!(count(Grain::Week, "2026-01-01", "2026-01-09"), Some(2));
    assert_eq!(count(Grain::Month, "2026-01-01", "2026-02-02"), Some(2));
    assert_eq!(
        count(Grain::Hour, "2026-01-01T00:00:00Z", "2026-01-01T01:00:01Z"),
        Some(2)
    );
}

#[test]
fn invalid_grids_name_the_wrong_field() {
    let check = |grain, zone, start, end, field: &str| {
        assert_eq!(
            TimeGrid::new(grain, zone, start, end).unwrap_err().field,
            field
        );
    };
    check(Grain::Day, "Europe/Berlinn", "2026-01-01", "", "time_zone");
    check(Grain::Day, "europe/berlin", "2026-01-01", "", "time_zone");
    check(Grain::Day, "", "2026-02-30", "", "start");
    check(Grain::Day, "", "2026-01-01T00:00:00Z", "", "start");
    check(Grain::Hour, "", "2026-01-01", "", "start");
    check(Grain::Month, "", "2026-01-02", "", "start");
    check(Grain::Day, "", "2026-01-02", "2026-01-02", "end");
    check(Grain::Day, "", "2026-01-02", "soon", "end");
}

proptest! {
    #[test]
    fn places_and_values_round_trip(
        grain in prop::sample::select(Grain::ALL),
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/Havana", "Asia/Kolkata", "Australia/Lord_Howe"]),
        place in 0i64..20_000,
    ) {
        let start = if grain == Grain::Hour { "2001-02-01T00:00:00Z" } else { "2001-02-01" };
        let grid = grid(grain, zone, start, "");
        prop_assert_eq!(grid.place(&grid.value(place).unwrap()), Ok(place));
        let span = grid.span(place).unwrap();
        prop_assert_eq!(grid.overlapping(&span), place..place + 1);
        prop_assert_eq!(grid.span(place + 1).unwrap().start, span.end);
        prop_assert_eq!(grid.ended(span.end), 0..place + 1);
    }
}
