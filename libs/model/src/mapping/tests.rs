use proptest::prelude::*;

use super::*;
use crate::grid::Grain;
use crate::partitioning::tests::{fixed, moment, partitioning, time};

const NOW: &str = "2027-01-01T00:00:00Z";

fn rule(upstream: &str, downstream: &str, rule: MappingRule) -> DeclaredRule {
    DeclaredRule {
        upstream: upstream.to_owned(),
        downstream: downstream.to_owned(),
        rule,
    }
}

/// The keys that `key` reads, as texts.
fn reads(
    up: &Partitioning,
    down: &Partitioning,
    declared: &[DeclaredRule],
    key: &str,
) -> Vec<String> {
    let mapping = Mapping::new(up, Some(down), declared).unwrap();
    let keys = mapping
        .upstream(up, Some((down, &key.parse().unwrap())), &moment(NOW))
        .unwrap();
    keys.iter().map(ToString::to_string).collect()
}

fn hours() -> Partitioning {
    partitioning(vec![time("hour", Grain::Hour, "", "2026-01-01T00:00:00Z")])
}

fn days(zone: &str) -> Partitioning {
    partitioning(vec![time("day", Grain::Day, zone, "2026-01-01")])
}

#[test]
fn periods_of_different_grain_map_by_overlap() {
    let long = reads(&hours(), &days("Europe/Berlin"), &[], "day=d:2026-10-25");
    assert_eq!(long.len(), 25);
    assert_eq!(
        (long[0].as_str(), long[24].as_str()),
        ("hour=t:2026-10-24T22:00:00Z", "hour=t:2026-10-25T22:00:00Z")
    );
    assert_eq!(
        reads(&hours(), &days("Europe/Berlin"), &[], "day=d:2026-03-29").len(),
        23
    );
    let weeks = partitioning(vec![time("week", Grain::Week, "", "2026-01-05")]);
    assert_eq!(
        reads(&weeks, &days(""), &[], "day=d:2026-01-14"),
        ["week=d:2026-01-12"]
    );
    assert_eq!(reads(&weeks, &days(""), &[], "day=d:2026-01-02"), [""; 0]);
}

#[test]
fn one_to_one_is_judged_by_definitions_alone() {
    let one_to_one = |up: &Partitioning, down: Option<&Partitioning>, declared: &[DeclaredRule]| {
        Mapping::new(up, down, declared)
            .unwrap()
            .is_one_to_one(up, down)
    };
    let of = |name, grain, zone, start| partitioning(vec![time(name, grain, zone, start)]);
    let window = |start, end| [rule("day", "day", MappingRule::Window { start, end })];
    let later = of("day", Grain::Day, "", "2026-02-01");
    assert!(one_to_one(&days(""), Some(&later), &[]));
    assert!(one_to_one(&later, Some(&days("")), &window(0, 0)));
    assert!(one_to_one(
        &days(""),
        Some(&of("date", Grain::Day, "", "2026-03-01")),
        &[]
    ));
    assert!(!one_to_one(&days(""), Some(&days("Europe/Berlin")), &[]));
    assert!(!one_to_one(&days(""), Some(&later), &window(-1, -1)));
    assert!(!one_to_one(&days(""), None, &[]));
    assert!(!one_to_one(&hours(), Some(&days("")), &[]));
    let (mondays, tuesdays) = (
        of("week", Grain::Week, "", "2026-01-05"),
        of("week", Grain::Week, "", "2026-01-06"),
    );
    assert!(one_to_one(
        &mondays,
        Some(&of("week", Grain::Week, "", "2026-03-02")),
        &[]
    ));
    assert!(!one_to_one(&mondays, Some(&tuesdays), &[]));
    let (regions, fewer) = (
        partitioning(vec![fixed("region", &["eu", "us"])]),
        partitioning(vec![fixed("region", &["eu"])]),
    );
    assert!(one_to_one(&fewer, Some(&regions), &[]));
    assert!(!one_to_one(&regions, Some(&days("")), &[]));
}

#[test]
fn windows_shift_and_extend() {
    let week_before = [rule(
        "day",
        "day",
        MappingRule::Window { start: -6, end: 0 },
    )];
    let read = reads(&days(""), &days(""), &week_before, "day=d:2026-01-10");
    assert_eq!(
        (read.len(), read[0].as_str(), read[6].as_str()),
        (7, "day=d:2026-01-04", "day=d:2026-01-10")
    );
    assert_eq!(
        reads(&days(""), &days(""), &week_before, "day=d:2026-01-02").len(),
        2
    );
    let yesterday = [rule(
        "day",
        "day",
        MappingRule::Window { start: -1, end: -1 },
    )];
    assert_eq!(
        reads(&days(""), &days(""), &yesterday, "day=d:2026-01-02"),
        ["day=d:2026-01-01"]
    );
    let inverted = [rule("day", "day", MappingRule::Window { start: 3, end: 0 })];
    assert_eq!(
        reads(&days(""), &days(""), &inverted, "day=d:2026-01-02"),
        [""; 0]
    );
}

#[test]
fn identity_table_and_latest_rules() {
    let (regions, zones) = (
        partitioning(vec![fixed("region", &["eu", "us"])]),
        partitioning(vec![fixed("zone", &["e1", "e2", "u1"])]),
    );
    assert_eq!(reads(&zones, &regions, &[], "region=s:eu").len(), 3);
    let table = MappingRule::Table(vec![("eu".into(), vec!["e1".into(), "e2".into()])]);
    let table = [rule("zone", "region", table)];
    assert_eq!(
        reads(&zones, &regions, &table, "region=s:eu"),
        ["zone=s:e1", "zone=s:e2"]
    );
    assert_eq!(reads(&zones, &regions, &table, "region=s:us"), [""; 0]);
    let latest = [rule("day", "", MappingRule::Latest(2))];
    assert_eq!(
        reads(&days(""), &regions, &latest, "region=s:eu"),
        ["day=d:2026-12-30", "day=d:2026-12-31"]
    );
    let both = partitioning(vec![
        time("day", Grain::Day, "", "2026-01-01"),
        fixed("region", &["eu", "asia"]),
    ]);
    assert_eq!(
        reads(&regions, &both, &[], "day=d:2026-01-01,region=s:eu"),
        ["region=s:eu"]
    );
    assert_eq!(
        reads(&regions, &both, &[], "day=d:2026-01-01,region=s:asia"),
        [""; 0]
    );
    let whole = Mapping::new(&regions, None, &[]).unwrap();
    assert_eq!(
        whole.upstream(&regions, None, &moment(NOW)).unwrap().len(),
        2
    );
}

#[test]
fn every_invalid_rule_is_reported() {
    let declared = [
        rule("moon", "day", MappingRule::Identity),
        rule("day", "moon", MappingRule::Identity),
        rule("day", "region", MappingRule::Window { start: 0, end: 0 }),
        rule("day", "region", MappingRule::Identity),
        rule("day", "day", MappingRule::Latest(1)),
        rule("day", "", MappingRule::Latest(0)),
        rule(
            "day",
            "region",
            MappingRule::Table(vec![("mars".into(), vec![])]),
        ),
        rule(
            "day",
            "day",
            MappingRule::Window {
                start: i32::MIN,
                end: 0,
            },
        ),
    ];
    let down = partitioning(vec![
        time("day", Grain::Day, "", "2026-01-01"),
        fixed("region", &["eu"]),
    ]);
    let faults = Mapping::new(&days(""), Some(&down), &declared).unwrap_err();
    let error: Vec<(usize, &str)> = faults
        .iter()
        .map(|fault| (fault.index, fault.field))
        .collect();
    let expected = [
        (0, "upstream"),
        (1, "downstream"),
        (2, "window"),
        (3, "identity"),
        (4, "downstream"),
        (5, "latest"),
        (6, "table"),
        (7, "window"),
    ];
    assert_eq!(error, expected);
}

fn grid_of(grain: Grain, zone: &str) -> Partitioning {
    let start = if grain == Grain::Hour {
        "2026-01-01T00:00:00Z"
    } else {
        "2026-01-01"
    };
    partitioning(vec![time("t", grain, zone, start)])
}

proptest! {
    /// Going to the readers of a key and back upstream must find the key, for every grain, zone and
    /// window.
    #[test]
    fn downstream_is_the_inverse_of_upstream(
        grains in (prop::sample::select(Grain::ALL), prop::sample::select(Grain::ALL)),
        zones in (prop::sample::select(vec!["UTC", "Europe/Berlin"]), prop::sample::select(vec!["UTC", "America/Havana"])),
        window in (-3i32..3, -3i32..3),
        place in 0i64..200,
    ) {
        let (up, down) = (grid_of(grains.0, zones.0), grid_of(grains.1, zones.1));
        let declared = [rule("t", "t", MappingRule::Window { start: window.0, end: window.1 })];
        let mapping = Mapping::new(&up, Some(&down), &declared).unwrap();
        let now = moment("2046-01-01T00:00:00Z");
        let Values::Time(grid) = &up.dimensions()[0].values else { unreachable!() };
        let key = PartitionKey::new([("t".to_owned(), grid.value(place).unwrap())]).unwrap();
        let readers = mapping.downstream(&up, &down, &key, &now).unwrap().unwrap();
        let reads = |reader: &PartitionKey| mapping.upstream(&up, Some((&down, reader)), &now).unwrap().contains(&key);
        for reader in &readers {
            prop_assert!(reads(reader), "{} does not read {}", reader, key);
        }
        // No other period of the same years reads it.
        let Values::Time(down_grid) = &down.dimensions()[0].values else { unreachable!() };
        let span = grid.span(place).unwrap();
        let near = down_grid.overlapping(&span);
        for place in (near.start - 8).max(0)..near.end + 8 {
            let other = PartitionKey::new([("t".to_owned(), down_grid.value(place).unwrap())]).unwrap();
            prop_assert_eq!(reads(&other), readers.contains(&other), "{}", other);
        }
    }
}

/// The keys that each downstream partition reads according to the axes, as texts.
fn reads_by_axes(
    up: &Partitioning,
    down: &Partitioning,
    declared: &[DeclaredRule],
) -> Vec<Vec<String>> {
    let at = moment(NOW);
    let axes = Mapping::new(up, Some(down), declared)
        .unwrap()
        .axes(up, Some(down), &at)
        .unwrap();
    let existing: Vec<Vec<PartitionValue>> = up
        .dimensions()
        .iter()
        .map(|dimension| dimension.existing(&at).unwrap())
        .collect();
    let lengths = down.all(&at).unwrap().lengths();
    let of_place = |mut place: u64| {
        let mut digits = vec![0usize; lengths.len()];
        for (digit, length) in digits.iter_mut().zip(&lengths).rev() {
            (*digit, place) = ((place % length) as usize, place / length);
        }
        let places = |axis: &Axis| match axis {
            Axis::Same(by) => vec![digits[*by] as u64],
            Axis::By(by, lists) => lists[digits[*by]].clone(),
            Axis::Fixed(list) => list.clone(),
        };
        let lists = axes.iter().zip(&existing).map(|(axis, values)| {
            places(axis)
                .into_iter()
                .map(|place| values[place as usize].clone())
                .collect()
        });
        let keys = product(up, lists.collect()).unwrap();
        keys.iter().map(ToString::to_string).collect()
    };
    (0..lengths.iter().product()).map(of_place).collect()
}

#[test]
fn axes_agree_with_single_keys() {
    let january = |name: &str| {
        let grid = TimeGrid::new(Grain::Day, "", "2026-01-01", "2026-02-01").unwrap();
        Dimension::new(name, Values::Time(grid)).unwrap()
    };
    let (eu_us, three) = (
        fixed("region", &["eu", "us"]),
        fixed("region", &["us", "asia", "eu"]),
    );
    let up = partitioning(vec![january("day"), eu_us.clone()]);
    let week_before = vec![rule(
        "day",
        "day",
        MappingRule::Window { start: -6, end: 0 },
    )];
    let table = MappingRule::Table(vec![("eu".into(), vec!["eu".into(), "us".into()])]);
    let cases = [
        (partitioning(vec![january("day"), eu_us.clone()]), vec![]),
        (
            partitioning(vec![january("day"), three.clone()]),
            week_before,
        ),
        (
            partitioning(vec![three.clone()]),
            vec![rule("region", "region", table)],
        ),
        (
            partitioning(vec![three]),
            vec![rule("day", "", MappingRule::Latest(2))],
        ),
    ];
    for (down, declared) in cases {
        let keys = down.all(&moment(NOW)).unwrap();
        let one_by_one: Vec<Vec<String>> = keys
            .keys()
            .map(|key| reads(&up, &down, &declared, &key.unwrap().to_string()))
            .collect();
        assert_eq!(
            reads_by_axes(&up, &down, &declared),
            one_by_one,
            "{declared:?}"
        );
    }
}
