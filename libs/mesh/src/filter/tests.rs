use std::collections::BTreeMap;

use prost_types::Timestamp as ProtoTimestamp;

use super::*;

#[derive(Default)]
struct Record {
    name: String,
    key: String,
    run: String,
    trigger: String,
    state: i32,
    open: bool,
    at: Option<ProtoTimestamp>,
    labels: BTreeMap<String, String>,
    owners: Vec<String>,
}

fn state(name: &str) -> Option<i32> {
    match name {
        "STATE_READY" => Some(1),
        "STATE_DONE" => Some(2),
        _ => None,
    }
}

static FIELDS: [Field<Record>; 11] = [
    Field::text("name", |record| &record.name),
    Field::asset_key("asset_key", |record| &record.key),
    Field::run_id("run_id", |record| &record.run),
    Field::one_of("trigger", &["manual", "sensor"], |record| &record.trigger),
    Field::named("state", "STATE_", state, |record| record.state),
    Field::flag("open", |record| record.open),
    Field::time("create_time", |record| record.at),
    Field::map("labels", |record, key| entry(&record.labels, key)),
    Field::list("owners", |record| &record.owners),
    Field::exact("topic"),
    Field::range("fail_time"),
];

fn run() -> RunId {
    RunId::from_bytes([5; 16])
}

fn record() -> Record {
    Record {
        name: "a b".to_owned(),
        key: "sales/orders".to_owned(),
        run: run().to_string(),
        trigger: "manual".to_owned(),
        state: 2,
        open: true,
        at: Some(ProtoTimestamp {
            seconds: 1_767_225_600,
            nanos: 0,
        }),
        labels: [("team".to_owned(), "core".to_owned())].into(),
        owners: vec!["ann".to_owned(), "bob".to_owned()],
    }
}

fn parse(filter: &str) -> Filter<Record> {
    Filter::parse(filter, &FIELDS).unwrap()
}

#[test]
fn a_record_matches_when_every_term_holds() {
    let check = |filter: &str, expected: bool| {
        assert_eq!(parse(filter).matches(&record()), expected, "{filter}");
    };
    check("", true);
    check("name = \"a b\" AND asset_key = sales.orders", true);
    check("asset_key != sales/orders", false);
    check(&format!("run_id = {}", run()), true);
    check("trigger = manual AND trigger != sensor", true);
    check(
        "state = done AND state = STATE_DONE AND state != READY",
        true,
    );
    check("state = ready", false);
    check("open = true AND open != false", true);
    check("open = false", false);
    check("labels.team = core AND labels.other != x", true);
    check("labels.team = other", false);
    check("owners : bob", true);
    check("owners : eve", false);
    check("create_time >= 2026-01-01T00:00:00Z", true);
    check("create_time > 2026-01-01T00:00:00Z", false);
    check("create_time = 2026-01-01T01:00:00+01:00", true);
    check("topic = runs AND fail_time > 2026-01-01T00:00:00Z", true);
}

#[test]
fn a_record_without_a_time_matches_no_condition_on_it() {
    let record = Record::default();
    assert!(!parse("create_time < 2026-01-01T00:00:00Z").matches(&record));
    assert!(!parse("create_time != 2026-01-01T00:00:00Z").matches(&record));
}

#[test]
fn conditions_that_fix_a_value_can_be_read() {
    let filter = parse(&format!(
        "asset_key = a.b AND run_id = {} AND name != x",
        run()
    ));
    assert_eq!(filter.exact("asset_key"), Some("a/b"));
    assert_eq!(filter.run_id("run_id"), Some(run()));
    assert_eq!(filter.exact("name"), None);
    assert_eq!(parse("state = DONE").number("state"), Some(2));
    assert_eq!(parse("state != DONE").number("state"), None);
    assert_eq!(parse("open != true").flag("open"), Some(false));
    assert_eq!(parse("open = true").flag("open"), Some(true));
    assert_eq!(parse("").flag("open"), None);
    assert!(parse("").is_all() && !parse("open = true").is_all());
}

#[test]
fn time_terms_are_combined_into_a_range() {
    let range = |filter: &str| {
        let range = parse(filter).range("fail_time");
        (range.from.unix_us(), range.until.unix_us())
    };
    let second = 1_767_225_600_000_000;
    let all = (0, TimeRange::ALL.until.unix_us());
    assert_eq!(range("topic = runs"), all);
    let day = "fail_time >= 2026-01-01T00:00:00Z AND fail_time < 2026-01-01T00:00:01Z";
    assert_eq!(range(day), (second, second + 1_000_000));
    let edges = "fail_time > 2026-01-01T00:00:00Z AND fail_time <= 2026-01-01T00:00:01Z";
    assert_eq!(range(edges), (second + 1, second + 1_000_001));
    assert_eq!(range("fail_time >= 1900-01-01T00:00:00Z"), all);
}

#[test]
fn errors_name_the_term_and_the_remedy() {
    let check = |filter: &str, expected: &str| {
        let error = Filter::parse(filter, &FIELDS).err().unwrap().to_string();
        assert!(error.contains(expected), "{filter}: {error}");
    };
    check(
        "owner = me",
        "`owner` cannot be filtered by; the fields are name, asset_key",
    );
    check("labels = x", "labels.*");
    check("name > a", "`name` takes = and != only");
    check("name : a", "`name` takes = and != only");
    check(
        "owners = ann",
        "`owners` is a list; ask it for an entry with `:`",
    );
    check("run_id = 7", "`7` is not a run id");
    check(
        "trigger = cron",
        "`cron` is not a trigger; use one of manual, sensor",
    );
    check("state = GOOD", "`GOOD` is not a state");
    check("open = yes", "`yes` is neither true nor false");
    check(
        "create_time > yesterday",
        "`yesterday` is not a time; write create_time like",
    );
    check("topic != runs", "`topic` takes = only");
    check("topic = a AND topic = b", "`topic` may be given once");
    check(
        "fail_time = 2026-01-01T00:00:00Z",
        "`fail_time` takes <, <=, > and >= only",
    );
}
